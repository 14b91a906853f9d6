package settings

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sluice/agents/egress"
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
			for i := range typ.NumField() {
				if f := typ.Field(i); f.IsExported() {
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

// TestTheDocsPrintTheTable: docs/trust.md has the same rows as Keys.
func TestTheDocsPrintTheTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| key | a project's file | |\n|---|---|---|\n"
	for _, k := range Keys() {
		want += fmt.Sprintf("| `%s` | %s | %s |\n", k.Name, k.Class, k.Means)
	}
	if !strings.Contains(string(doc), want) {
		t.Errorf("docs/trust.md wants this table:\n%s", want)
	}
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
		if _, got := s.Role(role).Reach(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", role, got, want)
		}
	}
}
