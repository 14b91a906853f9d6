package specs

import "sluice/engine"

// evaluated returns the value of an expression, as parse reads it; not ok if it is not known yet, or at fault.
func evaluated[T any](c *values, d written, what string, parse func(string) (T, string)) (v T, ok bool) {
	s, ok := c.bound(scalar{d.texpr, d.node}, what)
	if !ok {
		return v, false
	}
	v, why := parse(s)
	if why != "" {
		c.at(d.node, "%s: %s: %s", what, quote(d.texpr), why)
	}
	return v, why == ""
}

// span returns a duration's value, or 0 if it is not known yet.
func (c *values) span(d spanDoc, what string) engine.Duration {
	v := d.d
	if d.texpr != "" {
		v, _ = evaluated(c, d.written, what, parseSpan)
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

// count sets *to to a count's value. It reports whether there is one (yet).
func (c *values) count(d countDoc, least, most int, what string, to *int) bool {
	n, ok := d.n, d.set()
	if d.texpr != "" {
		n, ok = evaluated(c, d.written, what, parseCount)
	}
	if ok && (n < least || n > most) {
		c.at(d.node, "%s: %d is not between %d and %d", what, n, least, most)
		return false
	}
	if ok {
		*to = n
	}
	return ok
}

func (c *values) number(d number, what string) (float64, bool) {
	if d.texpr == "" {
		return d.f, true
	}
	return evaluated(c, d.written, what, parseNumber)
}

func (c *values) restarts(d countDoc, what string) *int {
	var n int
	if c.count(d, 0, maxRestarts, what, &n) {
		return &n
	}
	return nil
}
