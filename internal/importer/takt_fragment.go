package importer

import (
	"path"
	"strings"

	"gopkg.in/yaml.v3"
)

// Limits of fragments, as takt has them.
const (
	maxFragmentDepth = 64
	maxFragments     = 512
)

// expand returns a step with its parameters and fragments put in. Keys stay the nodes that they are
// in their files, so that each is counted once and by its place.
func (t *takt) expand(n *yaml.Node, params map[string]*yaml.Node, depth int) *yaml.Node {
	if depth > maxFragmentDepth {
		t.fail(n, "fragments use one another more than %d deep", maxFragmentDepth)
		return n
	}
	n = t.put(n, params)
	uses := str(get(n, "uses"))
	if uses != "" && t.err == nil {
		if t.top.uses++; t.top.uses > maxFragments {
			t.fail(n, "more than %d fragments", maxFragments)
			return n
		}
		fragment := t.fragment(get(n, "uses"), uses)
		if fragment == nil {
			return n
		}
		inner := t.expand(without(fragment, "params"), values(get(n, "with")), depth+1)
		if get(inner, "name") == nil && get(n, "name") == nil {
			inner = withText(inner, "name", uses[strings.LastIndexByte(uses, '/')+1:])
		}
		n = merge(inner, n)
	}
	return t.expandChildren(n, params, depth)
}

// expandChildren expands what a step does side by side.
func (t *takt) expandChildren(n *yaml.Node, params map[string]*yaml.Node, depth int) *yaml.Node {
	p := get(n, "parallel")
	if p == nil {
		return n
	}
	each := func(l *yaml.Node) *yaml.Node {
		out := shallow(l)
		for i, c := range l.Content {
			if c = resolve(c); get(c, "uses") != nil {
				c = t.expand(c, params, depth+1)
			}
			out.Content[i] = c
		}
		return out
	}
	if isList(p) {
		return withEntry(n, quoted("parallel"), each(p))
	}
	out := p
	for _, key := range []string{"fixed", "pool"} {
		if l := get(p, key); isList(l) {
			out = withEntry(out, quoted(key), each(l))
		}
	}
	return withEntry(n, quoted("parallel"), out)
}

// fragment reads steps/<name>.yaml of the tree.
func (t *takt) fragment(n *yaml.Node, name string) *yaml.Node {
	if root := t.top.fragments[name]; root != nil {
		return root
	}
	file := t.src.findIn("steps", path.Base(name)+".yaml", path.Base(name)+".yml")
	if file == "" {
		t.fail(n, "uses %q: there is no steps/%s.yaml in this tree", name, path.Base(name))
		return nil
	}
	d, ok := t.open(n, file)
	if !ok {
		return nil
	}
	t.top.fragments[name] = d.root
	return d.root
}

// put returns n with the values of parameters in the place of {$param: name}; a list among a list's
// entries is spliced in.
func (r *reader) put(n *yaml.Node, params map[string]*yaml.Node) *yaml.Node {
	n = resolve(n)
	out := shallow(n)
	r.origin[out] = r.origin[n]
	switch n.Kind {
	case yaml.MappingNode:
		if name := str(get(n, "$param")); name != "" && len(n.Content) == 2 {
			v := params[name]
			if v == nil {
				r.fail(n, "no value for the parameter %q", name)
				return n
			}
			return resolve(v)
		}
		for i := 1; i < len(out.Content); i += 2 {
			out.Content[i] = r.put(n.Content[i], params)
		}
		return out
	case yaml.SequenceNode:
		out.Content = nil
		for _, c := range n.Content {
			v := r.put(c, params)
			if get(resolve(c), "$param") != nil && isList(v) {
				out.Content = append(out.Content, v.Content...)
			} else {
				out.Content = append(out.Content, v)
			}
		}
		return out
	}
	return n
}

func shallow(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = append([]*yaml.Node{}, n.Content...)
	out.Anchor, out.Alias = "", nil
	return &out
}

func without(n *yaml.Node, key string) *yaml.Node {
	out := shallow(n)
	out.Content = nil
	for _, p := range pairs(n) {
		if p.key.Value != key {
			out.Content = append(out.Content, p.key, p.value)
		}
	}
	return out
}

// withEntry returns a mapping with another value for a key, which is added if it is not there.
func withEntry(n, key, value *yaml.Node) *yaml.Node {
	out := shallow(n)
	for i := 0; i+1 < len(out.Content); i += 2 {
		if out.Content[i].Value == key.Value {
			out.Content[i+1] = value
			return out
		}
	}
	out.Content = append(out.Content, key, value)
	return out
}

func withText(n *yaml.Node, key, value string) *yaml.Node {
	k, v := quoted(key), quoted(value)
	k.Line, v.Line = n.Line, n.Line
	return withEntry(n, k, v)
}

// merge lays a caller over a fragment: mappings deeply, all else as a whole.
func merge(fragment, caller *yaml.Node) *yaml.Node {
	if !isMap(fragment) || !isMap(caller) {
		return caller
	}
	out := shallow(fragment)
	for _, p := range pairs(caller) {
		value := p.value
		if old := get(fragment, p.key.Value); old != nil {
			value = merge(old, value)
		}
		out = withEntry(out, p.key, value)
	}
	return out
}
