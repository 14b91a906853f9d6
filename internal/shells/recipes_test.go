package shells

import (
	"slices"
	"strings"
	"testing"
)

// TestTextOf: of a Makefile, a justfile and a package.json only what a command's words run is read, with what that needs;
// all of it if that is not known.
func TestTextOf(t *testing.T) {
	const makefile = "X := a:b\nY ?= 1\n.PHONY: check deploy\nall: ; @ci/all.sh\n" +
		"check lint:: deps # gen\n\t@ci/check.sh $$HOME \\\n\t  more\n\t-$(MAKE) test\n\ndeploy:\n\tci/deploy.sh\n" +
		"deps: check\n\tci/deps.sh\ntest:\n\tpython3 ci/test.py\n"
	const npm = `{"scripts": {"test": "npm run unit && node ci/t.js", "pretest": "ci/pre.sh", "unit": "ci/unit", "x": "ci/x",
		"prepare": "ci/prepare"}}`
	const just = "check level='1': deps\n    @ci/check {{level}}\ndeps:\n  ci/deps\nother:\n  ci/other\n"
	for _, c := range []struct{ file, text, words, want string }{
		{"Makefile", makefile, "make -s check", "ci/check.sh $HOME  \t  more|ci/deps.sh|make test|python3 ci/test.py"},
		{"sub/GNUmakefile", makefile, "cd sub&&make 'deploy';true", "ci/deploy.sh"},
		{"Makefile", makefile, "make $X deploy", "ci/all.sh|ci/check.sh $HOME  \t  more|ci/check.sh $HOME  \t  more|ci/deploy.sh|ci/deps.sh|" +
			"make test|make test|python3 ci/test.py"},
		{"Makefile", "a:\n\tci/a\nb:\n\tci/b\n", "make", "ci/a|ci/b"},
		{"x.mk", "include a.mk $(X)/b.mk # c\n-include d.mk\nb:\n\tci/b\nc:\n\tci/c", "make b", "ci/b|make -f a.mk -f $(X)/b.mk|make -f d.mk"},
		{"justfile", just, "just check", "ci/check {{level}}|ci/deps"},
		{"package.json", npm, "npm run unit", "ci/prepare|ci/unit"},
		{"package.json", npm, "npm t", "ci/pre.sh|ci/prepare|ci/unit|npm run unit && node ci/t.js"},
		{"package.json", npm, "npm run $X", "ci/pre.sh|ci/prepare|ci/unit|ci/x|npm run unit && node ci/t.js"},
		{"package.json", "{", "npm test", ""},
		{"ci/other", makefile, "check", ""},
		{"ci/x", "#!/usr/bin/env bash\nci/y", "check", "#!/usr/bin/env bash|ci/y"},
		{"ci/x.sh", "ci/y", "check", "ci/y"},
		{"ci/x.py", "#!/usr/bin/python3\nci/y", "check", ""},
	} {
		words := map[string]bool{}
		for _, w := range Words(c.words) {
			words[w] = true
		}
		lines := strings.FieldsFunc(TextOf(c.file, c.text, words, Assigned(c.file, c.text)), func(r rune) bool { return r == '\n' })
		slices.Sort(lines)
		if got := strings.Join(lines, "|"); got != c.want {
			t.Errorf("%s, %s:\n%q\nwant %q", c.file, c.words, got, c.want)
		}
	}
}
