package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// TestForeignSettings: each name that the documents have for a setting is read, or it is said what takes its place.
func TestForeignSettings(t *testing.T) {
	conform.Rule(t, "13-law 001 settings", "each of its names, with what takes its place")
	home, root := t.TempDir(), t.TempDir()
	put := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(root, ".looper/config.json"), `{"max_iterations": 9, "agents": {"codex": {"model": "big", "timeout": 5}}, "hooks": {"post_iteration": ["x"]}, "other": 1}`)
	put(filepath.Join(root, ".claude-looper/config.json"), `{"timeLimit": 7200000, "maxFixCycles": 2}`)
	put(filepath.Join(root, ".claude-looper/state.json"), `{}`)
	put(filepath.Join(home, ".config/looper/config.json"), `no JSON`)
	env := []string{"LOOP_GOAL=x", "MAX_ITER=3", "CLAUDE_MODEL=m", "LOOPER_MAX_ITERATIONS=4", "LOOPER_CODEX_MODEL=m", "LOOPER_TIME_LIMIT=60000", "LOOPER_WHATEVER=1"}
	var got []string
	for _, f := range FindForeign(env, root, filepath.Join(home, ".config")) {
		got = append(got, f.String())
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{
		`\$LOOP_GOAL is not read; in its place: sluice run supervised-loop --var goal`, `\$MAX_ITER .*--var max_iter=`, `\$CLAUDE_MODEL .*roles\.NAME\.model`,
		`\$LOOPER_MAX_ITERATIONS .*--var max_iterations=`, `\$LOOPER_CODEX_MODEL .*roles\.NAME\.model`, `\$LOOPER_TIME_LIMIT .*--var time_limit=1m0s`, `\$LOOPER_WHATEVER .*sluice config`,
		`\.looper/config\.json: max_iterations .*--var max_iterations`, `config\.json: agents\.codex\.model .*roles\.NAME\.model`, `agents\.codex\.timeout .*roles\.NAME\.timeout`,
		`hooks\.post_iteration .*after_task`, `config\.json: other .*sluice config`, `timeLimit .*--var time_limit=2h0m0s`, `maxFixCycles .*--var max_fix_cycles`,
		`state\.json is not read.*sluice retry`, `\.config/looper/config\.json is not read`,
	} {
		if !regexp.MustCompile(want).MatchString(all) {
			t.Errorf("nothing is said of %s:\n%s", want, all)
		}
	}
	if len(got) != 16 {
		t.Errorf("%d things are told:\n%s", len(got), all)
	}
	if n := len(FindForeign([]string{"HOME=" + t.TempDir(), "SLUICE_CONFIG_GRACE=1s"}, t.TempDir(), t.TempDir())); n > 0 {
		t.Errorf("%d things are told where there is nothing", n)
	}

	// What the table promises is there: the templates' vars, and keys of the settings.
	for key, instead := range foreignKeys() {
		name, ok := strings.CutPrefix(instead, "--var ")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, "=")
		_, template, _ := strings.Cut(instead, "of the template ")
		data, err := os.ReadFile("../../specs/templates/" + template + "/specs/" + template + ".yaml")
		if err != nil || !regexp.MustCompile(`(?m)^ +`+name+`:`).Match(data) {
			t.Errorf("%s: template %s has no var %s: %v", key, template, name, err)
		}
	}
}
