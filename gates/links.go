package gates

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// MaxHops is the longest chain of links that is followed.
const MaxHops = 10

// Follow adds to the law what its links lead to: if ci leads to tools/ci, then ci/gate.sh is tools/ci/gate.sh. target
// returns the text of a link, or "" for one that the work changed: that link is law if law can be behind it. A link
// that leads out of the checkout, or in a circle, is unknown.
func (l *Law) Follow(links []string, target func(link string) (string, error)) error {
	for range MaxHops {
		before := l.size()
		for _, link := range links {
			is, program := l.Has(link)
			if !is && !l.Above(link) {
				continue
			}
			written, err := target(link)
			if err != nil {
				return err
			}
			if written == "" {
				if !is {
					l.settings.put(link)
				}
				continue
			}
			to := l.at.behind(link, written)
			if len(to) == 0 {
				l.doubt("the link " + link + " leads to no place in the checkout")
			}
			for _, at := range to {
				l.lead(link, at, is, program)
			}
		}
		if l.size() == before {
			return nil
		}
	}
	l.doubt("links of the checkout lead to one another without an end")
	return nil
}

// behind returns where a link leads, from the top of the checkout; nothing if that is outside or unknown.
func (j Bases) behind(link, written string) (out []string) {
	if path.IsAbs(written) {
		return j.Places(written)
	}
	up := strings.TrimLeft(written, "./")
	if at := path.Join(path.Dir(link), written); at != "." && at != ".." && !strings.HasPrefix(at, "../") &&
		!strings.Contains("/"+up+"/", "/../") { // of a folder that may be a link too
		out = append(out, at)
	}
	return out
}

// lead adds the law at a link again, at the place where the link leads.
func (l *Law) lead(link, to string, is, program bool) {
	for _, s := range []*started{&l.settings, &l.programs} {
		s.through(link, to)
	}
	if is && program {
		l.programs.put(to, to+"/")
	} else if is {
		l.settings.put(to, to+"/")
	}
	for _, r := range l.rules {
		name, inside := r.view.name(link)
		if rest, ok := leads(r.glob, name); ok && inside && !l.ruled(to+"/"+rest) {
			l.addRules(to + "/" + rest)
		}
	}
}

// ruled reports whether a glob is among the rules.
func (l Law) ruled(glob string) bool {
	return slices.ContainsFunc(l.rules, func(r rule) bool { return r.glob == glob })
}

// Above reports whether law can be in a folder, or behind a link in its place.
func (l Law) Above(dir string) bool {
	if l.settings.above[dir] || l.programs.above[dir] || l.programs.replaces(dir+"/__init__.py") {
		return true
	}
	return slices.ContainsFunc(l.rules, func(r rule) bool {
		if !strings.HasPrefix(dir, r.start) && !strings.HasPrefix(r.start, dir) {
			return false
		}
		name, inside := r.view.name(dir)
		_, ok := leads(r.glob, name)
		return inside && ok
	})
}

// leads returns the rest of a glob whose first parts match a folder.
func leads(glob, dir string) (rest string, ok bool) {
	parts, n := strings.Split(path.Clean(glob), "/"), strings.Count(dir, "/")+1
	if n >= len(parts) || slices.Contains(parts[:n], "**") {
		return "", false
	}
	return strings.Join(parts[n:], "/"), Matches(strings.Join(parts[:n], "/"), dir)
}

// through adds what is behind a link again, at the place where the link leads.
func (s *started) through(link, to string) {
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(s.files)), s.folders) {
		if rest, ok := strings.CutPrefix(name, link+"/"); ok && rest != "" {
			s.put(to + "/" + rest)
		}
	}
	for folder := range maps.Clone(s.modules) {
		if rest, ok := strings.CutPrefix(folder, link+"/"); ok {
			s.imports(strings.TrimSuffix(to+"/"+rest, "/"))
		}
	}
}

func (l Law) size() int {
	n := len(l.rules)
	for _, s := range []started{l.settings, l.programs} {
		n += len(s.files) + len(s.folders) + len(s.modules)
	}
	return n
}

func (l *Law) doubt(why string) {
	if !slices.Contains(l.unknown, why) {
		l.unknown = append(l.unknown, why)
	}
}
