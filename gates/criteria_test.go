package gates

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/text/hostile"
	hold "sluice/tools/conform"
)

// repo creates a repo's folder with a worktree, and a folder outside both.
func repo(t *testing.T) (root, worktree, outside string) {
	t.Helper()
	top := t.TempDir()
	root, worktree, outside = filepath.Join(top, "repo"), filepath.Join(top, "repo", "phase-4"), filepath.Join(top, "outside")
	for path, text := range map[string]string{
		"repo/CLAUDE.md": "x", "repo/docs/plan.md": "root's", "repo/docs/only-root.md": "x", "repo/.workflow/retry-context/G-attempt-1.md": "1",
		"repo/.workflow/retry-context/G-attempt-2.md": "2", "repo/phase-4/docs/plan.md": "worktree's", "repo/phase-4/test/a_test.py": "x",
		"repo/phase-4/test/deep/er/b_test.py": "x", "repo/phase-4/test/deep.txt": "x", "repo/phase-4/empty": "", "repo/phase-4/a[1].txt": "x", "repo/phase-4/.workflow/signals/stray": "x",
		"repo/phase-4/.git/config": "x", "outside/secret": "x", "repo2/secret": "x",
	} {
		full := filepath.Join(top, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(worktree, "bare"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root, worktree, outside
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skip("kernel: no links here: ", err)
	}
}

// shell really runs commands.
func shell(dir string) func(context.Context, int, engine.Command) (int, string, error) {
	return func(ctx context.Context, _ int, c engine.Command) (int, string, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", c.Shell)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode(), string(out), nil
		}
		return 0, string(out), err
	}
}

func sh(s string) engine.Criterion { return engine.Criterion{Command: &engine.Command{Shell: s}} }

func TestCheckHolds(t *testing.T) {
	hold.Rule(t, "1-language rule 4", "files and commands are checked by machine; other texts go to the reviewer")
	hold.Rule(t, "004 §3 criterion.file", "file … exists and is non-empty is checked")
	hold.Rule(t, "004 §3 criterion.command", "… exits 0 is checked")
	hold.Rule(t, "004 §2 Step.success_criterion", "a criterion that holds and one that does not")
	root, worktree, _ := repo(t)
	link(t, "docs/plan.md", filepath.Join(worktree, "inner"))
	link(t, filepath.Join(root, "docs"), filepath.Join(worktree, "to-root"))
	r := Check(t.Context(), CheckInput{Root: root, Worktree: worktree,
		Outputs: []string{"test/a_test.py", "test", "empty", "bare", ".workflow/retry-context/G-attempt-1.md", "inner", "to-root/only-root.md", "a[1].txt"},
		Criteria: []engine.Criterion{{File: "docs/plan.md", NonEmpty: true}, {File: "test", NonEmpty: true}, {File: "empty"}, sh("test -f docs/plan.md && ! test -e CLAUDE.md"),
			{Text: "It reads well.\x1b[1m"}, {Text: "It is short."}},
		Run: shell(worktree)})
	if !r.OK || r.Why != "" || r.Broken != "" || !slices.Equal(r.ToReview, []string{"It reads well.", "It is short."}) {
		t.Errorf("%+v", r)
	}
	if r := Check(t.Context(), CheckInput{Root: root, Worktree: "phase-4", Outputs: []string{"empty"}}); !r.OK {
		t.Errorf("a worktree as the spec writes it: %+v", r)
	}
	if r := Check(t.Context(), CheckInput{Root: root, Outputs: []string{"CLAUDE.md"}}); !r.OK {
		t.Errorf("no worktree: %+v", r)
	}
	if r := Check(t.Context(), CheckInput{Root: root, Worktree: filepath.Join(root, "gone")}); r.OK || r.Broken == "" {
		t.Errorf("a worktree that is gone: %+v", r)
	}
}

func TestCheckTellsAllFiles(t *testing.T) {
	hold.Rule(t, "004 §2 Step.outputs", "an output that is missing fails the step, by name")
	hold.Rule(t, "1-language rule 3", "outputs that are not there: not done")
	hold.Rule(t, "004 §3 criterion.file", "a file that is empty does not hold")
	root, worktree, _ := repo(t)
	ran := false
	r := Check(t.Context(), CheckInput{Root: root, Worktree: worktree, Outputs: []string{"none.py", "CLAUDE.md", ".workflow/signals/stray", "test/a_test.py"},
		Criteria: []engine.Criterion{{File: "empty", NonEmpty: true}, {File: "bare", NonEmpty: true}, sh("true"), {File: ".workflow/none", NonEmpty: true}},
		Run:      func(context.Context, int, engine.Command) (int, string, error) { ran = true; return 0, "", nil }})
	want := "Not all files are there that the step must produce:\n\n" +
		"- output `none.py` is missing (looked in phase-4/)\n" +
		"- output `CLAUDE.md` is missing (looked in phase-4/)\n" +
		"- output `.workflow/signals/stray` is missing (looked in the root of the repo)\n" +
		"- file `empty` is there but empty (looked in phase-4/)\n" +
		"- file `bare` is there but empty (looked in phase-4/)\n" +
		"- file `.workflow/none` is missing (looked in the root of the repo)\n\n" +
		"Not run, because of this: `true`."
	if r.OK || r.Why != want || ran {
		t.Errorf("ran %v, why:\n%s\nwant:\n%s", ran, r.Why, want)
	}
}

func TestCheckStopsAtTheFirstCommand(t *testing.T) {
	hold.Rule(t, "1-language rule 4", "the output of what did not hold is the feedback")
	hold.Rule(t, "004 §3 criterion.command", "a command that exits 3 does not hold")
	hold.Rule(t, "004 §2 Step.success_criterion", "what does not hold says why")
	root, worktree, _ := repo(t)
	r := Check(t.Context(), CheckInput{Root: root, Worktree: worktree, Criteria: []engine.Criterion{
		sh("touch ran-1"), sh("touch made; echo '```'; printf '\\033[31mbroken\\033[0m\\n' >&2; exit 3"), sh("touch ran-3"), {File: "made"}, {File: "none"}}, Run: shell(worktree)})
	for _, part := range []string{"exit code 3, run in phase-4/", "````data\n```\nbroken\n````", "Not run, because of this: `touch ran-3`", "file `none` is missing"} {
		if !strings.Contains(r.Why, part) {
			t.Errorf("no %q in:\n%s", part, r.Why)
		}
	}
	if strings.Contains(r.Why, "`made`") || r.OK {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(worktree, "ran-1")); err != nil {
		t.Error("the first command did not run")
	}
	if _, err := os.Stat(filepath.Join(worktree, "ran-3")); err == nil {
		t.Error("a command after the failed one ran")
	}
	for exit, words := range map[string]string{"kill -KILL $$": "was ended by a signal", "no-such-command-here": "(no such command)"} {
		if r := Check(t.Context(), CheckInput{Root: root, Worktree: worktree, Criteria: []engine.Criterion{sh(exit)}, Run: shell(worktree)}); !strings.Contains(r.Why, words) {
			t.Errorf("%s: %+v", exit, r)
		}
	}
}

func TestCheckIsBroken(t *testing.T) {
	root, worktree, _ := repo(t)
	broken := func(context.Context, int, engine.Command) (int, string, error) { return 0, "", errors.New("no room") }
	if r := Check(t.Context(), CheckInput{Root: root, Worktree: worktree, Criteria: []engine.Criterion{sh("make")}, Run: broken}); r.OK || r.Why != "" || r.Broken != "criterion `make` could not be checked: no room" {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Check(ctx, CheckInput{Root: root, Worktree: worktree, Criteria: []engine.Criterion{sh("true")},
		Run: func(context.Context, int, engine.Command) (int, string, error) { return 0, "", nil }}); r.OK || r.Broken == "" {
		t.Errorf("%+v", r)
	}
}

func TestCheckIsBounded(t *testing.T) {
	root, _, _ := repo(t)
	in := CheckInput{Root: root, Run: func(context.Context, int, engine.Command) (int, string, error) {
		return 1, hostile.Flood(1<<20) + "\nthe end", nil
	}}
	in.Criteria = append(in.Criteria, sh(hostile.Flood(1<<20)))
	for i := range 500 {
		in.Criteria = append(in.Criteria, engine.Criterion{Text: hostile.Flood(10 << 10)}, engine.Criterion{File: fmt.Sprint(i, "none")})
	}
	r := Check(t.Context(), in)
	if len(r.Why) > engine.MaxFeedback || !strings.Contains(r.Why, "\nthe end\n") || !strings.Contains(r.Why, "… and 400 more") {
		t.Errorf("%d bytes: %s", len(r.Why), r.Why)
	}
	in = CheckInput{Root: root}
	for range 200 { // none of what is to be judged is left out, or cut
		in.Criteria = append(in.Criteria, engine.Criterion{Text: strings.Repeat("x", 10<<10) + " end"})
	}
	if r := Check(t.Context(), in); !r.OK || len(r.ToReview) != 200 || len(r.ToReview[199]) != 10<<10+4 {
		t.Errorf("%d criteria to review", len(r.ToReview))
	}
	opened, fence := 0, text.Fence{}
	for l := range strings.SplitSeq(r.Why, "\n") {
		before := fence
		if fence = fence.Next(l); fence.Open() && !before.Open() {
			opened++
		}
	}
	if opened != 1 || fence.Open() {
		t.Errorf("the output's block is not whole")
	}
}

// Nothing outside the repo is looked at, through a path or a link.
func TestCheckNeverLeavesTheRepo(t *testing.T) {
	hold.Rule(t, "1-language paths", "nothing outside of the repo is looked at")
	root, worktree, outside := repo(t)
	link(t, filepath.Join(outside, "secret"), filepath.Join(worktree, "abs"))
	link(t, "../../outside/secret", filepath.Join(worktree, "rel"))
	link(t, "../../outside", filepath.Join(worktree, "dir"))
	link(t, "../../repo2/secret", filepath.Join(worktree, "sibling"))
	link(t, "../../outside/none", filepath.Join(worktree, "dangling"))
	link(t, "rel", filepath.Join(worktree, "chain"))
	link(t, "loop", filepath.Join(worktree, "loop"))
	for _, p := range []string{"abs", "rel", "dir/secret", "dir", "sibling", "dangling", "chain", "../../outside/secret", filepath.Join(outside, "secret"), "test/../../../outside/secret", ".workflow/../../outside/secret", "..", "docs/../../docs/../.."} {
		for name, r := range map[string]engine.CheckResult{
			"output": Check(t.Context(), CheckInput{Root: root, Worktree: worktree, Outputs: []string{p}}),
			"file":   Check(t.Context(), CheckInput{Root: root, Worktree: worktree, Criteria: []engine.Criterion{{File: p}}}),
		} {
			if r.OK || !strings.Contains(r.Why, "leads out of the repo") {
				t.Errorf("%s %s: %+v", name, p, r)
			}
		}
		if found, missing, err := Expand(root, worktree, []string{p}); err == nil {
			t.Errorf("input %s: %q, %q", p, found, missing)
		}
	}
	for _, p := range []string{"loop", "", "a\x00b", strings.Repeat("a/", 5000), strings.Repeat("x", 300)} {
		if r := Check(t.Context(), CheckInput{Root: root, Worktree: worktree, Outputs: []string{p}}); r.OK || r.Why == "" || strings.Contains(r.Why, worktree) {
			t.Errorf("output %.40q: %+v", p, r)
		}
	}
	for _, p := range []string{"dir/*", "re*", "../*", "*/../../../outside/*", "/etc/*"} {
		if found, _, err := Expand(root, worktree, []string{p}); err == nil && len(found) > 0 {
			t.Errorf("input %s finds %q", p, found)
		}
	}
}

func TestExpand(t *testing.T) {
	hold.Rule(t, "004 §3 inputs.retry", "a glob that finds nothing is no fault")
	hold.Rule(t, "004 §2 Step.inputs", "inputs are found in the worktree, else in the root")
	root, worktree, _ := repo(t)
	for _, c := range []struct{ patterns, found, missing string }{
		{"docs/plan.md", "docs/plan.md", ""},
		{"docs/only-root.md", "../docs/only-root.md", ""},
		{"CLAUDE.md none.md docs/plan.md", "../CLAUDE.md docs/plan.md", "none.md"},
		{".workflow/retry-context/G-*.md", "../.workflow/retry-context/G-attempt-1.md ../.workflow/retry-context/G-attempt-2.md", ""},
		{".workflow/retry-context/none-*.md", "", ""},
		{".workflow/signals/stray", "", ".workflow/signals/stray"},
		{"./.workflow/signals/*", "", ""},
		{"docs/*.md", "docs/plan.md", ""},
		{"docs/only-*.md", "../docs/only-root.md", ""},
		{"test/*_test.py", "test/a_test.py", ""},
		{"test/**", "test/a_test.py test/deep.txt test/deep/er/b_test.py", ""},
		{"**/*_test.py", "test/a_test.py test/deep/er/b_test.py", ""},
		{"te?t/[ab]_test.py test/a_test.py", "test/a_test.py", ""},
		{"test/**/**/b_*", "test/deep/er/b_test.py", ""},
		{"test/**/er/*", "test/deep/er/b_test.py", ""},
		{"a[1].txt", "a[1].txt", ""},
		{"test", "test", ""},
		{"**/config", "", ""},
		{"none/*/x", "", ""},
		{"*/../docs/plan.md ./docs//plan.md", "docs/plan.md", ""},
		{"*/..", ".", ""},
		{"", "", ""},
	} {
		found, missing, err := Expand(root, worktree, strings.Fields(c.patterns))
		if err != nil || strings.Join(found, " ") != c.found || strings.Join(missing, " ") != c.missing {
			t.Errorf("%s: found %q, missing %q, %v", c.patterns, found, missing, err)
		}
	}
	for _, broken := range []string{"docs/[a", "../x", ""} {
		if _, _, err := Expand(root, worktree, []string{broken}); err == nil {
			t.Errorf("%q is taken", broken)
		}
	}
	if _, _, err := Expand(root, worktree, make([]string, maxPatterns+1)); err == nil {
		t.Error("any number of patterns is taken")
	}
	if out, err := exec.Command("mkfifo", filepath.Join(worktree, "pipe")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if found, missing, err := Expand(root, worktree, []string{"pipe", "pip*"}); err != nil || len(found) > 0 || len(missing) != 1 {
		t.Errorf("a pipe: %q, %q, %v", found, missing, err)
	}
	if r := Check(t.Context(), CheckInput{Root: root, Worktree: worktree, Outputs: []string{"pipe"}, Criteria: []engine.Criterion{{File: "pipe", NonEmpty: true}}}); !strings.Contains(r.Why, "is not a file (a named pipe") {
		t.Errorf("a pipe: %+v", r)
	}
}

func TestExpandIsBounded(t *testing.T) {
	root := t.TempDir()
	for i := range MaxFound + 1 {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("f%d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Expand(root, "", []string{"f*"}); err == nil || !strings.Contains(err.Error(), "more than 1000 files") {
		t.Errorf("error %v", err)
	}
}

func FuzzExpand(f *testing.F) {
	for _, p := range []string{"docs/*", "../x", "**/**/a", "[", "a\\", "/etc/passwd", ".workflow/../..", "x/./y", "\\..\\x"} {
		f.Add(p)
	}
	root, err := os.MkdirTemp(f.TempDir(), "")
	if err != nil {
		f.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "w", "docs"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, p string) {
		found, missing, err := Expand(root, "w", []string{p})
		if err == nil && len(found) > 0 && len(missing) > 0 {
			t.Errorf("%q is found and missing", p)
		}
		for _, name := range found {
			if full := filepath.Join(root, "w", filepath.FromSlash(name)); !layout.Inside(root, full) {
				t.Errorf("%q finds %q", p, full)
			}
		}
		_ = Check(t.Context(), CheckInput{Root: root, Worktree: "w", Outputs: []string{p}})
	})
}
