//go:build linux

package test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// keysVar is how long random keys are pressed at each screen: a duration.
const keysVar = "SLUICE_KEYS"

// TestRandomKeysAtEachScreen: nobody passes a gate by keys that they press at random, however fast, and
// also not by those typed ahead: a pass needs a question, a second of rest, and Enter. Words that were
// typed at a question for a reason may fail it.
func TestRandomKeysAtEachScreen(t *testing.T) {
	most := 4 * time.Second
	if s := os.Getenv(keysVar); s != "" {
		var err error
		if most, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	keys := strings.Fields("a c d f g h j k n o r s t v x y P G 1 / ? Space Tab Up Down Left Right PageDown BSpace C-j M-Enter" +
		strings.Repeat(" p Enter", 12) + strings.Repeat(" Escape", 6))
	for _, screen := range []string{"run w-1", "top", "show G"} {
		t.Run(screen, func(t *testing.T) {
			t.Parallel()
			seed := seedOf(t)
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			w, sluice := gated(t)
			w.env = append(w.env, "EDITOR=true", "VISUAL=true", "PAGER=cat")
			defer w.serve(sluice)()
			if code, out := w.binary(sluice, "start", "w"); code != 0 {
				t.Fatal(out)
			}
			w.until(`G +review`, "inbox")
			win := w.inTerminal(100, 30, "while sleep 0.2; do "+sluice+" "+screen+"; done")
			win.sees(`p pass`)
			pressed := 0
			for end := time.Now().Add(most); time.Now().Before(end); pressed++ {
				win.types(keys[rnd.IntN(len(keys))])
				if rnd.IntN(3) == 0 {
					time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond)
				}
			}
			win.tmux("kill-server")
			_, log, _ := w.sluice("log")
			if strings.Contains(log, "passed by") || strings.Contains(log, "completed") {
				t.Errorf("after %d keys:\n%s", pressed, log)
			}
			t.Logf("%d keys, %d fails with words", pressed, len(regexp.MustCompile(`failed by`).FindAllString(log, -1)))
		})
	}
}
