package specs

import "sluice/engine"

// span returns a duration's value, or 0 if it is not known yet.
func (c *values) span(d spanDoc, what string) engine.Duration {
	if d.texpr == "" {
		return engine.Duration(d.d)
	}
	s, ok := c.bound(scalar{d.texpr, d.node}, what)
	if !ok {
		return 0
	}
	v, why := parseSpan(s)
	if why != "" {
		c.at(d.node, "%s: %s: %s", what, quote(d.texpr), why)
	}
	return engine.Duration(v)
}

// positiveSpan is span for a duration that must be more than 0.
func (c *values) positiveSpan(d spanDoc, what string) engine.Duration {
	v := c.span(d, what)
	if d.set() && d.texpr == "" && v == 0 {
		c.at(d.node, "%s is 0: give it a duration such as 30m, or remove the key", what)
	}
	return v
}

// count returns a count's value; not ok if there is none (yet).
func (c *values) count(d countDoc, least, most int, what string) (int, bool) {
	n := d.n
	if d.texpr != "" {
		s, ok := c.bound(scalar{d.texpr, d.node}, what)
		if !ok {
			return 0, false
		}
		v, why := parseCount(s)
		if why != "" {
			c.at(d.node, "%s: %s: %s", what, quote(d.texpr), why)
			return 0, false
		}
		n = v
	}
	if d.set() && (n < least || n > most) {
		c.at(d.node, "%s: %d is not between %d and %d", what, n, least, most)
		return 0, false
	}
	return n, d.set()
}

func (c *values) number(d number, what string) (float64, bool) {
	if d.texpr == "" {
		return d.f, true
	}
	s, ok := c.bound(scalar{d.texpr, d.node}, what)
	if !ok {
		return 0, false
	}
	f, why := parseNumber(s)
	if why != "" {
		c.at(d.node, "%s: %s: %s", what, quote(d.texpr), why)
	}
	return f, why == ""
}

func (c *values) restarts(d countDoc, what string) *int {
	if n, ok := c.count(d, 0, maxRestarts, what); ok {
		return &n
	}
	return nil
}
