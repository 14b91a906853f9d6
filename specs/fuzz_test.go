package specs

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// seeds are specs that load and specs that do not.
func seeds(f *testing.F) {
	f.Helper()
	for _, src := range goodSpecs(f) {
		f.Add(src)
	}
	_, table := brokenTable(f)
	for _, b := range table {
		f.Add([]byte(b.spec))
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(bomb()))
}

// bomb doubles a list 12 times with aliases.
func bomb() string {
	b := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		b += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b
}

// FuzzLoad: any bytes yield either a spec or faults, soon. Each fault has a place within the file,
// and what loads is also valid by the schema.
func FuzzLoad(f *testing.F) {
	seeds(f)
	schema := compiledSchema(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		began := time.Now()
		spec, faults := Load("", src)
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		if (spec == nil) == (len(faults) == 0) {
			t.Fatalf("spec %v, faults %v", spec, faults)
		}
		lines := strings.FieldsFunc(strings.NewReplacer("\r", "x\n", "\n", "x\n", "\u0085", "x\n", "\u2028", "x\n", "\u2029", "x\n").Replace(string(src))+"x",
			func(r rune) bool { return r == '\n' }) // YAML's own idea of a line
		for _, f := range faults {
			if f.Line < 1 || f.Col < 1 || f.Line > len(lines)+1 || f.Message == "" {
				t.Errorf("no place: %v", f)
			}
		}
		if spec == nil {
			return
		}
		if len(spec.Steps) == 0 {
			t.Error("a spec without steps")
		}
		if err := schema.Validate(asJSON(t, src)); err != nil {
			t.Errorf("Load takes what the schema does not: %v", err)
		}
	})
}
