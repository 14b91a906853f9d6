package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestVars: the service gets what agents go by and what is named, no secret beside it, and of PATH what means the same in
// every folder.
func TestVars(t *testing.T) {
	got := Vars([]string{"HOME=/me", "PATH=/bin:rel:/usr/bin", "API_KEY=secret", "TZ=", "CODEX_HOME=/c", "SLUICE_CONFIG_A=", "SLUICE_X=1", "HTTPS_PROXY=p"}, []string{"CODEX_HOME", "SLUICE_CONFIG_*"})
	if want := "map[CODEX_HOME:/c HOME:/me HTTPS_PROXY:p PATH:/bin:/usr/bin SLUICE_CONFIG_A:]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestPutDown: a stop and a shutdown are remembered, a crash is not; what cannot be read is no moment.
func TestPutDown(t *testing.T) {
	home, at := t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	if err := NotePutDown(home, EndCrash, at); err != nil || !PutDown(home).IsZero() {
		t.Errorf("a crash: %v %v", PutDown(home), err)
	}
	if err := NotePutDown(home, EndStop, at); err != nil || !PutDown(home).Equal(at) {
		t.Errorf("a stop: %v %v", PutDown(home), err)
	}
	if err := os.WriteFile(filepath.Join(home, putDownFile), []byte("soon"), 0o600); err != nil || !PutDown(home).IsZero() {
		t.Errorf("not a moment: %v %v", PutDown(home), err)
	}
}
