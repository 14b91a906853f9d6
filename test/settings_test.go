package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/settings"
	"sluice/internal/workspace"
	"sluice/tools/conform"
)

// own writes the person's settings file.
func (w *playground) own(text string) {
	w.t.Helper()
	file := filepath.Join(filepath.Dir(w.dir), "config", "sluice", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// settings reads all layers in the world.
func (w *playground) settings(set ...string) (*settings.Layered, error) {
	return workspace.Settings(console.New(w.env, nil, nil, nil), w.dir, set)
}

// TestAllFaultsOfSettingsAtOnce: config reports every fault, one per line.
func TestAllFaultsOfSettingsAtOnce(t *testing.T) {
	w := newWorld(t, true)
	w.write(".workflow/config.yaml", "gracee: 1s\nmax_parallel: x\n")
	w.env = append(w.env, "SLUICE_CONFIG_GRACEE=2s")
	code, _, errs := w.sluice("config", "--set", "lingerr=1s")
	for _, want := range []string{"gracee: no such key", "max_parallel", "SLUICE_CONFIG_GRACEE: no such key: did you mean SLUICE_CONFIG_GRACE?", "--set lingerr=1s: lingerr: no such key", "4 faults"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not said: %s", want, errs)
		}
	}
	if code != fault.ExitFailed {
		t.Errorf("exit code %d", code)
	}
}

// TestValidateTellsTheSettings: a correct spec is not enough for a run, so a fault of the settings
// is reported with its place.
func TestValidateTellsTheSettings(t *testing.T) {
	w := newWorld(t, true)
	w.write(".workflow/specs/a.yaml", "workflow: {id: a}\nsteps:\n  - {id: X-1, run: \"true\", next_step: DONE}\n")
	if code, out, errs := w.sluice("validate"); code != 0 {
		t.Fatalf("before the fault: %d %s%s", code, out, errs)
	}
	w.write(".workflow/config.yaml", "gracee: 1s\nmax_parallel: x\n")
	code, out, errs := w.sluice("validate")
	for _, want := range []string{"config.yaml:1:1: gracee: no such key: did you mean grace?", "config.yaml:2:15: max_parallel"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said: %s", want, out)
		}
	}
	if code != fault.ExitFailed || !strings.Contains(errs, "2 faults in 1 file and the settings") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, out, _ := w.sluice("validate", "--json"); !strings.Contains(out, `"line": 2`) || !strings.Contains(out, `"col": 15`) {
		t.Errorf("as JSON: %s", out)
	}
}

func TestConfigShowsOneKey(t *testing.T) {
	conform.Rule(t, "001 cli.config", "a key, its value and its place")
	w := newWorld(t, true)
	w.write(".workflow/config.yaml", "veto_window: 37s\n")
	if code, out, errs := w.sluice("config", "veto_window"); code != 0 || strings.Join(strings.Fields(out), " ") != "veto_window 37s .workflow/config.yaml:1 may tighten" && !strings.Contains(out, ".workflow/config.yaml:1") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	code, out, _ := w.sluice("config", "notify", "--json")
	var list []settings.Value
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || len(list) < 2 || list[0].From != "built-in" || list[0].Class != settings.YoursOnly {
		t.Errorf("%d %s: %v", code, out, err)
	}
	if code, _, errs := w.sluice("config", "veto_windo"); code != fault.ExitUsage || !strings.Contains(errs, "did you mean veto_window?") {
		t.Errorf("%d %q", code, errs)
	}
}

// TestEachCommandShowsARefusedSetting: nobody has to look for why a project's value is not used.
func TestEachCommandShowsARefusedSetting(t *testing.T) {
	w := newWorld(t, true)
	w.own("trust: sandbox\n")
	w.write(".workflow/specs/a.yaml", "workflow: {id: a}\nsteps:\n  - {id: X-1, run: \"true\", next_step: DONE}\n")
	w.write(".workflow/config.yaml", "max_parallel: 2\ntrust: file\n")
	for _, args := range [][]string{{"status"}, {"validate"}, {"doctor"}, {"config"}, {"run", "a"}} {
		_, out, errs := w.sluice(args...)
		if !strings.Contains(out+errs, "config.yaml:2: trust: file asks for less than sandbox") {
			t.Errorf("%v: %s%s", args, out, errs)
		}
	}
	w.own("")
	w.write(".workflow/config.yaml", "max_parallel: 2\n")
	if _, out, _ := w.sluice("config"); !strings.Contains(out, "may tighten") || !strings.Contains(out, "yours only") {
		t.Errorf("config does not say what a project may set: %s", out)
	}
}
