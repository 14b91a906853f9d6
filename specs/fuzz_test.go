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
	t := &testing.T{}
	for _, src := range goodSpecs(t) {
		f.Add(src)
	}
	_, table := brokenTable(t)
	for _, b := range table {
		f.Add([]byte(b.spec))
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(bomb()))
}

// bomb doubles a list 12 times by aliases.
func bomb() string {
	b := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		b += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b
}

// FuzzLoad: any bytes give a spec or faults, never both nor neither; soon; each fault has a place within the file.
func FuzzLoad(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		began := time.Now()
		spec, faults := Load("", src)
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		if (spec == nil) == (len(faults) == 0) {
			t.Fatalf("spec %v, faults %v", spec, faults)
		}
		lines := strings.Split(string(src), "\n")
		for _, f := range faults {
			if f.Line < 1 || f.Col < 1 || f.Line > len(lines)+1 || f.Message == "" {
				t.Errorf("no place: %v", f)
			}
		}
		if spec != nil && len(spec.Steps) == 0 {
			t.Error("a spec without steps")
		}
	})
}
