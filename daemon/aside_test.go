package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/journal"
)

// TestWhatIsAsideStays: a daemon that is killed leaves no mark. The next start must not put its own new file in the
// place of the older release's.
func TestWhatIsAsideStays(t *testing.T) {
	root := t.TempDir()
	s := serveTest(t, root, newStage())
	if _, err := s.client.Do(context.Background(), engine.RunRequested{Source: "two"}, ""); err != nil {
		t.Fatal(err)
	}
	s.until("two-1", "the human gate", func(r RunStatus) bool {
		return r.Phase == engine.RunRunning && len(r.Waits) > 0 && r.Waits[0].Kind == "human"
	})
	s.stop()
	name, markAt := filepath.Join(root, ExportName("two")), filepath.Join(s.state, markFile)
	var whole bytes.Buffer
	if err := journal.WriteLines(&whole, s.state, KeepWorkflow("two"), journal.Options{}); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(markAt)
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{name: whole.Bytes(), markAt: bytes.Replace(old, []byte(`"form":2,`), nil, 1)} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var m mark
	if err := json.Unmarshal(old, &m); err != nil {
		t.Fatal(err)
	}
	for life := range 2 { // each is killed: nobody calls end
		c, _, err := openCore(s.state, journal.Options{}, twoGates)
		if err != nil {
			t.Fatal(err)
		}
		x := newExporter(root, s.state, zerolog.Nop(), func(string) {})
		x.begin(c.log.Replay)
		untilAudited(t, root, s.state, fmt.Sprintf("all of life %d", life), func(rep journal.ExportReport) bool { return rep.Lines > 0 })
		for working := true; working; time.Sleep(time.Millisecond) { // its goroutine ends by itself
			x.mu.Lock()
			working = x.working
			x.mu.Unlock()
		}
		c.log.Close()
		data, err := os.ReadFile(strings.TrimSuffix(name, ".log") + ".whole.log")
		if err != nil || !bytes.Equal(data, whole.Bytes()) {
			t.Fatalf("life %d: what the older release wrote (%d bytes) has %d bytes now: %v", life, whole.Len(), len(data), err)
		}
	}
}
