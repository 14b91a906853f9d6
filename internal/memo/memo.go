// Package memo is a cache for values that never change, or that its user compares with the current ones.
package memo

import "sync"

// Most limits the entries of a Memo.
const Most = 1000

// Memo has some of the values that were put into it. The zero Memo is ready. It is safe for concurrent use.
type Memo[K comparable, V any] struct {
	mu sync.Mutex // guards of
	of map[K]V
}

// Get returns the value of a key, if it is there.
func (m *Memo[K, V]) Get(k K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.of[k]
	return v, ok
}

// Put adds a value. At the limit it forgets the others.
func (m *Memo[K, V]) Put(k K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil || len(m.of) >= Most {
		m.of = map[K]V{}
	}
	m.of[k] = v
}
