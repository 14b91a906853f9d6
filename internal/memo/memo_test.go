package memo

import "testing"

func TestMemo(t *testing.T) {
	var m Memo[int, string]
	if v, ok := m.Get(1); ok || v != "" {
		t.Errorf("empty: %q, %v", v, ok)
	}
	for i := range Most {
		m.Put(i, "a")
	}
	if v, ok := m.Get(0); !ok || v != "a" {
		t.Errorf("full: %q, %v", v, ok)
	}
	m.Put(Most, "b")
	if v, ok := m.Get(Most); !ok || v != "b" {
		t.Errorf("the newest: %q, %v", v, ok)
	}
	if _, ok := m.Get(0); ok || len(m.of) != 1 {
		t.Errorf("beyond the limit: %d entries", len(m.of))
	}
}
