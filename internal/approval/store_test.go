package approval

import (
	"testing"
	"time"

	"sluice/internal/atomicfile"
)

// TestStoreAtOnce: who changes the list waits for another process's change. What that has read would else be written
// over this one's: a key that was added is lost, and one that was revoked counts again.
func TestStoreAtOnce(t *testing.T) {
	s := Store{State: t.TempDir()}
	ann, bob := publicOf(t, keygen(t, "-t", "ed25519")), publicOf(t, keygen(t, "-t", "ed25519"))
	for _, k := range []Signer{ann, bob} {
		if err := s.Add(k); err != nil {
			t.Fatal(err)
		}
	}
	cal := publicOf(t, keygen(t, "-t", "ed25519"))
	for name, change := range map[string]func() error{
		"add":    func() error { return s.Add(cal) },
		"revoke": func() error { return s.Revoke(Revoked{Key: ann.Key}) },
		"place":  func() error { return s.Place(bob.Key, "/k") },
	} {
		done := make(chan error, 1)
		err := atomicfile.Alone(s.ListFile(), func() error { // another process
			l, err := s.Load()
			if err != nil {
				return err
			}
			go func() { done <- change() }()
			select {
			case err := <-done:
				t.Errorf("%s did not wait: %v", name, err)
				done <- err
			case <-time.After(50 * time.Millisecond):
			}
			return s.save(l.Signers)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	_, old := l.Find(ann.Key)
	_, fresh := l.Find(cal.Key)
	if old || !fresh || len(l.Signers) != 2 || len(l.Revoked) != 1 || s.Places()[bob.Key] != "/k" {
		t.Errorf("%+v %v", l, s.Places())
	}
}
