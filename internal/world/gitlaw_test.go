//go:build linux || darwin

package world

import (
	"slices"
	"strings"
	"testing"

	"sluice/internal/job"
	"sluice/tools/conform"
)

const plainSpec = `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer}, signal: {type: sentinel_file}, gate: G}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// TestGitSettingsAreLaw: what the person's git settings name in the checkout, or start from it, is law as it was when the run
// began, whatever the settings say later.
func TestGitSettingsAreLaw(t *testing.T) {
	conform.Rule(t, "9-one-tree git settings", "a changed file that git's settings name in the checkout is told as law")
	b := newBench(t, plainSpec)
	files := []string{".githooks/pre-commit", "conf/git", "conf/nested", "tools/clean.sh", "tools/text.sh", "tools/merge", "tools/alias", "lists/ignore", "lists/attr", "msg.txt", "src/a.go"}
	for _, f := range files {
		b.put(f, "was\n")
	}
	b.put("conf/git", "[include]\n\tpath = nested\n[filter \"y\"]\n\tclean = tools/text.sh %f\n")
	b.put("conf/nested", "[user]\n\tname = x\n")
	b.sh(`git config core.hooksPath .githooks; git config include.path ../conf/git; git config filter.x.smudge cat; git config filter.x.clean "sh ./tools/clean.sh %f"
git config merge.m.driver "'` + b.root + `/tools/merge' %A"; git config alias.a '!f() { ./tools/alias; }; f'; git config core.excludesFile "` + b.root + `/lists/ignore"
git config core.attributesFile lists/attr; git config commit.template msg.txt; git add -A; git commit -q --no-verify -m before`)
	j := b.checkJob("A", 1)
	b.begin(j)
	b.sh("git config --unset core.hooksPath; git config --unset include.path; git config filter.x.clean cat")
	for _, f := range files {
		b.put(f, "changed\n")
	}
	b.put(".githooks/new", "new\n")
	want := append(files[:len(files)-1], ".githooks/new")
	slices.Sort(want)
	got := b.carry(j).Check.Protected
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestHiddenFilesAreAsked: files that only a step's own ignore rules hide are named in the question and bound; so are
// ignored files that `protect` names, also where they did not change.
func TestHiddenFilesAreAsked(t *testing.T) {
	conform.Rule(t, "9-one-tree ignored", "a person is asked, and the question names the files; they are bound")
	conform.Rule(t, "9-one-tree beside", "ignored files that protect names are bound beside the tree, and an answer is void where one changes")
	b := newBench(t, strings.Replace(plainSpec, "{id: w}", `{id: w, protect: [".env"]}`, 1))
	b.put(".gitignore", ".env\nout/\n")
	b.put(".env", "KEY=1\n")
	b.sh("git add -A; git commit -q -m before")
	j := b.checkJob("A", 1)
	b.begin(j)
	b.put("new.txt", "x")
	was := b.carry(j).Check
	if len(was.Protected) > 0 || !strings.Contains(was.Digest, "+") {
		t.Errorf("%+v", was)
	}
	if b.digestNow() != was.Digest {
		t.Error("another digest, though nothing changed")
	}
	b.put(".env", "KEY=2\n")
	if b.digestNow() == was.Digest {
		t.Error("an ignored file that protect names is not bound")
	}
	b.put(".env", "KEY=1\n")

	b.put(".gitignore", ".env\nout/\nfake/\n")
	for _, f := range []string{"a", "b", "c", "d", "e"} {
		b.put("fake/"+f+".py", "evil\n")
	}
	j = b.checkJob("A", 2)
	b.begin(j)
	c := b.carry(j).Check
	if !slices.Equal(c.Protected, []string{".gitignore", `ignore rules, which hide "fake/a.py", "fake/b.py", "fake/c.py" and 2 more`}) {
		t.Errorf("%q", c.Protected)
	}
	now, err := b.e.DigestNow(b.ctx(), job.Reviewed{Run: run1, Step: "A", Attempt: 2, Digest: c.Digest})
	if err != nil || now != c.Digest {
		t.Errorf("%s, %v", now, err)
	}
	b.put("fake/e.py", "other\n")
	if now, err := b.e.DigestNow(b.ctx(), job.Reviewed{Run: run1, Step: "A", Attempt: 2, Digest: c.Digest}); err != nil || now == c.Digest {
		t.Errorf("a hidden file is not bound: %s, %v", now, err)
	}
}

// TestLinksOfTheLaw: if the target of a law's link changes, a person is asked, as for a new link in place of a folder of
// the law, also where git ignores it.
func TestLinksOfTheLaw(t *testing.T) {
	b := newBench(t, `
workflow: {id: w, protect: [AGENTS.txt]}
steps:
  - {id: A, agent: {type: writer}, signal: {type: sentinel_file}, gate: G}
gates:
  - {id: G, reviewer: {level: auto, run: "./ci/gate.sh && make && python3 -c 'import json' && mods/run"}, on_pass: {next_step: DONE}}
`)
	files := []string{"build/Makefile", "tools/ci/gate.sh", "docs/agents.md", "docs/other.md", "src/a.go"}
	for _, f := range files {
		b.put(f, "was\n")
	}
	b.sh("echo mods >.gitignore; ln -s build/Makefile Makefile; ln -s tools/ci ci; ln -s docs/agents.md AGENTS.txt; git add -A; git commit -q -m before")
	j := b.checkJob("A", 1)
	b.begin(j)
	for _, f := range files {
		b.put(f, "changed\n")
	}
	b.put("evil/__init__.py", "new\n")
	b.sh("ln -s evil json; ln -s evil mods; ln -s evil src/link")
	want := []string{"build/Makefile", "docs/agents.md", "json", "mods", "tools/ci/gate.sh"}
	c := b.carry(j).Check
	got := slices.Sorted(slices.Values(c.Protected))
	if c.Broken != "" || !slices.Equal(got, want) {
		t.Errorf("%q %q\nwant %q", c.Broken, got, want)
	}
}

// TestScriptsInTurnAreLaw: what a gate's Makefile and scripts start in turn, as it was before the run and also behind
// links, is law if it is a script too or what a tool goes by. What else they start is the work.
func TestScriptsInTurnAreLaw(t *testing.T) {
	b := newBench(t, strings.Replace(plainSpec, "level: human", "level: auto, run: [make, check]", 1))
	files := map[string]string{"build/Makefile": "check: deps\n\t@ci/check.sh\nother:\n\tci/other.sh\ndeps:\n\tnode src/x.js\n",
		"tools/ci/check.sh": "cd ..; tools/deep && ./tools/new.sh\nnpx jest; npx eslint .\n", "tools/deep": "#!/bin/bash\ntrue\n", "tools/data": "x",
		"src/x.js": "x", "jest.config.js": "x", "src/.eslintrc.json": "{}", "tools/ci/other.sh": "true\n"}
	for f, text := range files {
		b.put(f, text)
	}
	b.sh("ln -s build/Makefile Makefile; ln -s tools/ci ci; git add -A; git commit -q -m before")
	j := b.checkJob("A", 1)
	b.begin(j)
	for f := range files {
		if f != "build/Makefile" {
			b.put(f, "changed\n")
		}
	}
	b.put("tools/new.sh", "new\n")
	want := []string{"jest.config.js", "src/.eslintrc.json", "tools/ci/check.sh", "tools/deep"}
	c := b.carry(j).Check
	if got := slices.Sorted(slices.Values(c.Protected)); c.Broken != "" || !slices.Equal(got, want) {
		t.Errorf("%q %q\nwant %q", c.Broken, got, want)
	}
}

// TestImportsAreLaw: what the instructions of agents import, as they were before the run, is law, and what that imports in
// turn; so is the script of a hook in their settings.
func TestImportsAreLaw(t *testing.T) {
	b := newBench(t, strings.Replace(plainSpec, "level: human", "level: auto, run: [true]", 1))
	b.put("sub/CLAUDE.md", "Read @../docs/rules.md first.\n")
	b.put("docs/rules.md", "See @more.md and @none.md.\n")
	b.put("docs/more.md", "See @rules.md.\n")
	b.put("docs/other.md", "was\n")
	b.put(".claude/settings.json", `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh scripts/hook.sh"}]}]}}`)
	b.put("scripts/hook.sh", "was\n")
	b.sh("git add -A; git commit -q -m before")
	j := b.checkJob("A", 1)
	b.begin(j)
	for _, f := range []string{"docs/rules.md", "docs/more.md", "docs/other.md", "scripts/hook.sh"} {
		b.put(f, "changed\n")
	}
	c := b.carry(j).Check
	if got := slices.Sorted(slices.Values(c.Protected)); c.Broken != "" || !slices.Equal(got, []string{"docs/more.md", "docs/rules.md", "scripts/hook.sh"}) {
		t.Errorf("%q %q", c.Broken, got)
	}
}

// TestUnreadImportsAsk: instructions that are not read to their end may import any file.
func TestUnreadImportsAsk(t *testing.T) {
	b := newBench(t, strings.Replace(plainSpec, "level: human", "level: auto, run: [true]", 1))
	b.put("QWEN.md", strings.Repeat("A rule.\n", 32<<10)+"@far.md\n") // more than is read
	b.put("far.md", "was\n")
	b.sh("git add -A; git commit -q -m before")
	j := b.checkJob("A", 1)
	b.begin(j)
	b.put("far.md", "changed\n")
	if c := b.carry(j).Check; len(c.Protected) != 1 || !strings.Contains(c.Protected[0], "what QWEN.md imports after 262144 bytes") {
		t.Errorf("%q %q", c.Broken, c.Protected)
	}
}

// TestProgramsOfPathAreLaw: the PATH that counts is the daemon's.
func TestProgramsOfPathAreLaw(t *testing.T) {
	b := newBench(t, strings.Replace(plainSpec, "level: human", "level: auto, run: [lintx]", 1))
	b.put("bin/lintx", "was\n")
	b.sh("git add -A; git commit -q -m before")
	b.e = b.executor(func(o *Options) { o.Environ = []string{"PATH=" + b.root + "/bin:/usr/bin:/bin"} })
	j := b.checkJob("A", 1)
	b.begin(j)
	b.put("bin/lintx", "changed\n")
	b.put("bin/other", "new\n")
	if c := b.carry(j).Check; !slices.Equal(c.Protected, []string{"bin/lintx"}) {
		t.Errorf("%+v", c)
	}
}

// TestOutputsThatAnAnswerNames: a declared output is no law, but for one whose path an agent said.
func TestOutputsThatAnAnswerNames(t *testing.T) {
	b := newBench(t, `
workflow: {id: w, vars: {own: own}}
steps:
  - id: A
    agent: {type: writer}
    answer: {type: object, properties: {name: {type: string}}}
    outputs: ["tools/${{answer.name}}.py", "tools/${{vars.own}}.py"]
    signal: {type: sentinel_file}
    gate: G
gates:
  - {id: G, reviewer: {level: auto, run: "python3 tools/check.py && python3 tools/own.py"}, on_pass: {next_step: DONE}}
`)
	b.put("tools/check.py", "was\n")
	b.put("tools/own.py", "was\n")
	b.sh("git add -A; git commit -q -m before")
	j := b.checkJob("A", 1)
	j.Attempt.Answer = []byte(`{"name": "check"}`)
	b.begin(j)
	b.put("tools/check.py", "changed\n")
	b.put("tools/own.py", "changed\n")
	if c := b.carry(j).Check; !slices.Equal(c.Protected, []string{"tools/check.py"}) {
		t.Errorf("%+v", c)
	}
}
