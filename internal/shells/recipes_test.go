package shells

import (
	"strings"
	"testing"
)

// TestTextOf: of a Makefile and a package.json only what a command's words run is read, with what that needs.
func TestTextOf(t *testing.T) {
	const makefile = "X := a:b\nY ?= 1\n.PHONY: check deploy\nall: ; @ci/all.sh\n" +
		"check lint:: deps # gen\n\t@ci/check.sh $$HOME \\\n\t  more\n\t-$(MAKE) test\n\ndeploy:\n\tci/deploy.sh\n" +
		"deps: check\n\tci/deps.sh\ntest:\n\tpython3 ci/test.py\n"
	const npm = `{"scripts": {"test": "npm run unit && node ci/t.js", "pretest": "ci/pre.sh", "unit": "ci/unit", "x": "ci/x"}}`
	for _, c := range []struct{ file, text, words, want string }{
		{"Makefile", makefile, "make -s check", "ci/check.sh $HOME  \t  more|$(MAKE) test|ci/deps.sh|python3 ci/test.py"},
		{"sub/GNUmakefile", makefile, "make deploy", "ci/deploy.sh"},
		{"Makefile", makefile, "make", "ci/all.sh"},
		{"package.json", npm, "npm test", "npm run unit && node ci/t.js|ci/pre.sh|ci/unit"},
		{"justfile", "check level='1': deps\n    @ci/check {{level}}\ndeps:\n  ci/deps\n", "just", "ci/check {{level}}|ci/deps"},
		{"package.json", npm, "npm ci", ""},
		{"package.json", "{", "npm test", ""},
		{"ci/other", makefile, "check", ""},
		{"ci/x", "#!/usr/bin/env bash\nci/y", "check", "#!/usr/bin/env bash|ci/y"},
		{"ci/x.sh", "ci/y", "check", "ci/y"},
		{"ci/x.py", "#!/usr/bin/python3\nci/y", "check", ""},
	} {
		got := strings.Join(strings.FieldsFunc(TextOf(c.file, c.text, strings.Fields(c.words)),
			func(r rune) bool { return r == '\n' }), "|")
		if got != c.want {
			t.Errorf("%s, %s:\n%q\nwant %q", c.file, c.words, got, c.want)
		}
	}
}
