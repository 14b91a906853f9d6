package launch

import (
	"context"
	"io"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

// known is an Afar that has sent some keys.
type known struct {
	keys map[string]bool
	asks int
}

func (k *known) Launch(context.Context, string, []string, func() (Sent, error), Watch) (Back, error) {
	k.asks++
	return Back{Exit: engine.Exit{Code: 7}}, nil
}
func (*known) Stop(context.Context, string) (*Back, error)        { return nil, nil }
func (k *known) Knows(key string) bool                            { return k.keys[key] }
func (*known) Get(context.Context, string) (io.ReadCloser, error) { return nil, nil }

// A launch that was on the record before, and that this machine has never sent, may be on a worker
// already: it is lost, and launched again under another key.
func TestFoundLaunchIsSentOnce(t *testing.T) {
	conform.Rule(t, "13-workers keys", "after a takeover no key is sent a second time")
	t.Parallel()
	const key = "far-1/A#1.1"
	for _, c := range []struct {
		name string
		l    Order
		own  bool
		asks int
	}{
		{"decided now", Order{Key: key}, false, 1},
		{"found, of another machine", Order{Key: key, Found: true}, false, 0},
		{"found, of this machine", Order{Key: key, Found: true}, true, 1},
		{"a correction of one of this machine", Order{Key: key + "+1", Of: key, Found: true}, true, 1},
	} {
		of := &known{keys: map[string]bool{key: c.own}}
		back, err := Far{&Launches{}, of}.launch(t.Context(), c.l, nil)
		if err != nil || of.asks != c.asks || back.Exit.Lost != (c.asks == 0) {
			t.Errorf("%s: sent %d times, %+v, %v", c.name, of.asks, back.Exit, err)
		}
	}
}
