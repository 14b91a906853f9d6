package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sluice/agents/egress"
	"sluice/tools/printed"
)

// TestEveryKeyHasOneRow: the table of what a project's file may set has each key of the settings
// once, and no other.
func TestEveryKeyHasOneRow(t *testing.T) {
	var leaves []string
	var walk func(typ reflect.Type, at []string)
	walk = func(typ reflect.Type, at []string) {
		switch typ.Kind() {
		case reflect.Map:
			walk(typ.Elem(), append(at, "NAME"))
		case reflect.Struct:
			for f := range typ.Fields() {
				if f := f; f.IsExported() && f.Tag.Get("koanf") != "-" {
					walk(f.Type, append(slices.Clone(at), f.Tag.Get("koanf")))
				}
			}
		default:
			leaves = append(leaves, strings.Join(at, "."))
		}
	}
	walk(reflect.TypeFor[Settings](), nil)
	used := map[string]bool{}
	for _, leaf := range leaves {
		k, ok := KeyOf(strings.Split(leaf, "."))
		if !ok {
			t.Errorf("%s has no row: decide what a project's file may do with it", leaf)
		}
		used[k.Name] = true
		if m := MeaningOf(strings.Split(leaf, ".")); m.Key != leaf || m.Does == "" {
			t.Errorf("%s: say in Meanings what it does", leaf)
		}
	}
	if n := len(Meanings()); n != len(leaves) {
		t.Errorf("%d meanings of %d keys", n, len(leaves))
	}
	for _, k := range Keys() {
		if !used[k.Name] {
			t.Errorf("%s: no such key, or an earlier row has it", k.Name)
		}
		if (k.looser != nil) != (k.Class == MayTighten) || k.Means == "" {
			t.Errorf("%s: class %q, means %q", k.Name, k.Class, k.Means)
		}
	}
	if len(leaves) < 40 {
		t.Errorf("%d keys were looked at", len(leaves))
	}
}

// TestKeysAreDocumented: docs/settings.md has each key with its default and meaning, docs/trust.md what a
// project's file may do with it.
func TestKeysAreDocumented(t *testing.T) {
	w := newWorld(t)
	w.env = nil // the tests set a mode of the sandbox
	s, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	builtIn := map[string]string{}
	for _, v := range s.Values() {
		builtIn[v.Key] = strings.NewReplacer("0m0s", "", "m0s", "m").Replace(fmt.Sprint(v.Value))
	}
	var meanings, classes [][]string
	for _, m := range Meanings() {
		preset := m.Default
		if preset == "" {
			preset = "`" + builtIn[m.Key] + "`"
		}
		meanings = append(meanings, []string{"`" + m.Key + "`", preset, m.Does})
	}
	for _, k := range Keys() {
		classes = append(classes, []string{"`" + k.Name + "`", k.Class, k.Means})
	}
	printed.Check(t, "../../docs/settings.md", "settings", printed.Table([]string{"key", "default", "meaning"}, meanings))
	printed.Check(t, "../../docs/trust.md", "classes", printed.Table([]string{"key", "a project's file", ""}, classes))
}

// TestHostsOfTheProject: a host that only the project names is reachable only at public addresses.
func TestHostsOfTheProject(t *testing.T) {
	below, s := Default(), Default()
	below.Roles["yours"] = Role{Network: []string{"db.example", "web"}}
	s.Roles["yours"] = Role{Network: []string{"db.example", "x.example"}}
	s.Roles["new"] = Role{Network: []string{"x.example:443"}}
	s.HoldHosts(below)
	for role, want := range map[string]egress.Rules{
		"yours": {Hosts: []string{"db.example"}, Public: []string{"x.example"}},
		"new":   {Public: []string{"x.example:443"}},
	} {
		if _, got := s.Role(role).Reach(""); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", role, got, want)
		}
	}
}
