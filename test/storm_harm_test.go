//go:build linux

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// harm is what was done to some machines, until it is made good.
type harm struct {
	to    []string
	until time.Time
	heal  func()
}

// harmed reports whether something is done to a machine already.
func (s *storm) harmed(names ...string) bool {
	for _, h := range s.harm {
		for _, a := range h.to {
			if slices.Contains(names, a) {
				return true
			}
		}
	}
	return false
}

// harms does one thing to some machines, that are whole, for a while.
func (s *storm) harms() {
	i, j := s.rnd.IntN(3), s.rnd.IntN(len(s.workers))
	server, worker := fmt.Sprintf("s%d", i), s.workers[j]
	box := s.daemons[s.rnd.IntN(2)]
	if m := s.leader(); m != nil && s.rnd.IntN(3) > 0 {
		box = m
	}
	everyone := []string{"s0", "s1", "s2", "a", "b", worker.name}
	one := everyone[s.rnd.IntN(len(everyone))]
	other := everyone[s.rnd.IntN(3)] // a server
	kinds := []struct {
		name  string
		share int
		to    []string
		do    func() (heal func())
	}{
		{"a server is killed", 3, []string{server}, func() func() { return s.killServer(i) }},
		{"a worker is killed", 2, []string{worker.name}, func() func() { return s.killBox(worker, false) }},
		{"a worker and its agents are killed", 2, []string{worker.name}, func() func() { return s.killBox(worker, true) }},
		{"a daemon is killed", 3, []string{box.name}, func() func() { return s.killBox(box, true) }},
		{"a daemon and a server are killed", 1, []string{box.name, server}, func() func() {
			server, box := s.killServer(i), s.killBox(box, true)
			return func() { server(); box() }
		}},
		{"a machine's cable is pulled", 4, []string{one}, func() func() {
			s.lan.plug(one, false)
			return func() { s.lan.plug(one, true) }
		}},
		{"two machines do not hear each other", 2, []string{one, other}, func() func() {
			s.lan.hears(one, other, false)
			s.lan.hears(other, one, false)
			return func() { s.lan.hears(one, other, true); s.lan.hears(other, one, true) }
		}},
		{"one machine does not hear another", 2, []string{one, other}, func() func() {
			s.lan.hears(one, other, false)
			return func() { s.lan.hears(one, other, true) }
		}},
		{"a server's disk is filled", 1, []string{server}, func() func() { return s.fill(i) }},
		{"a daemon stops", 2, []string{box.name}, func() func() {
			_ = box.last.Process.Signal(syscall.SIGSTOP)
			return func() { _ = box.last.Process.Signal(syscall.SIGCONT) }
		}},
	}
	all := 0
	for _, k := range kinds {
		all += k.share
	}
	at := s.rnd.IntN(all)
	for _, k := range kinds {
		if at -= k.share; at >= 0 {
			continue
		}
		if s.harmed(k.to...) || len(k.to) > 1 && k.to[0] == k.to[1] {
			return
		}
		most := stormLease * 3 // two in three are over within, the others last longer
		if s.rnd.IntN(3) == 0 {
			most *= 3
		}
		took := time.Duration(s.rnd.Int64N(int64(most)))
		s.t.Logf("%s: %s %v for %s", time.Now().Format("15:04:05"), k.name, k.to, took.Truncate(time.Millisecond))
		s.count[k.name]++
		s.harm = append(s.harm, &harm{to: k.to, heal: k.do(), until: time.Now().Add(took)})
		return
	}
}

// heals makes good what is due; all of it, if all.
func (s *storm) heals(all bool) {
	var left []*harm
	for _, h := range s.harm {
		if all || time.Now().After(h.until) {
			h.heal()
		} else {
			left = append(left, h)
		}
	}
	s.harm = left
}

func (s *storm) killServer(i int) func() {
	s.servers.Kill(i)
	return func() { s.servers.Run(i) }
}

func (s *storm) killBox(m *stormBox, agents bool) func() {
	m.crash(agents)
	return func() { m.run(s.lan) }
}

// fill leaves a server no room. A server that was full is started anew.
func (s *storm) fill(i int) func() {
	file := filepath.Join(s.disks[i], "hog")
	hog(s.t, file)
	return func() {
		s.servers.Kill(i)
		if err := os.Remove(file); err != nil {
			s.t.Fatal(err)
		}
		s.servers.Run(i)
	}
}
