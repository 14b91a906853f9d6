package stats

import (
	"cmp"
	"strings"
	"time"

	"sluice/engine"
)

func (c *Counter) ofProcess(r *run, f engine.Fact, at time.Time) {
	switch f := f.(type) {
	case engine.StepLaunched:
		if !f.Offered && !f.Person {
			c.procs[f.Run+" "+f.Key] = &proc{role: f.Role, since: at}
		}
	case engine.ReviewStarted:
		c.procs[f.Run+" "+f.Key] = &proc{role: f.Role, gate: c.gate(r, f.Gate), since: at}
	case engine.ClockHeld:
		if p := c.procs[f.Run+" "+f.Key]; p != nil {
			p.held = true
		}
	case engine.ClockBegun:
		if p := c.procs[f.Run+" "+f.Key]; p != nil {
			p.since, p.held = at, false
		}
	case engine.TimeLost:
		for key, p := range c.procs {
			if strings.HasPrefix(key, f.Run+" ") {
				p.since = p.since.Add(time.Duration(f.By))
			}
		}
	case engine.UsageCounted:
		if p := c.procs[f.Run+" "+f.Key]; p != nil {
			p.used = f.Usage
		}
	case engine.ProcessGone:
		if p := c.procs[f.Run+" "+f.Key]; p != nil {
			delete(c.procs, f.Run+" "+f.Key)
			if f.Exit.NotStarted != "" || f.Exit.Refused != "" {
				return
			}
			if p.held {
				p.since = at
			}
			p.used.Tokens = max(p.used.Tokens, f.Exit.Usage.Tokens)
			p.used.CostUSD = max(p.used.CostUSD, f.Exit.Usage.CostUSD)
			c.use(p, at, cmp.Or(f.Day, at.Format(time.DateOnly)))
		}
	}
}

// use counts a process that has ended.
func (c *Counter) use(p *proc, at time.Time, day string) {
	role := cmp.Or(p.role, "(commands)")
	for _, x := range []struct {
		of   map[string]*Used
		name string
	}{{c.roles, role}, {c.days, day}} {
		u := x.of[x.name]
		if u == nil {
			u = &Used{Name: x.name}
			x.of[x.name] = u
		}
		u.Launches++
		u.Time += engine.Duration(since(p.since, at))
		u.Tokens, u.CostUSD = u.Tokens+p.used.Tokens, u.CostUSD+p.used.CostUSD
	}
	if p.gate != nil {
		p.gate.Time += engine.Duration(since(p.since, at))
		p.gate.Reviews.Tokens += p.used.Tokens
		p.gate.Reviews.CostUSD += p.used.CostUSD
	}
}
