package patch

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// heap notes the largest heap while a diff is read.
type heap struct {
	in   io.Reader
	read int
	peak uint64
}

func (h *heap) Read(b []byte) (int, error) {
	if h.read%(4<<20) < 64<<10 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		h.peak = max(h.peak, m.HeapAlloc)
	}
	n, err := h.in.Read(b)
	h.read += n
	return n, err
}

// repeated is a piece, n times.
type repeated struct {
	piece []byte
	n, at int
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.piece[r.at:])
	if r.at += n; r.at == len(r.piece) {
		r.at, r.n = 0, r.n-1
	}
	return n, nil
}

// TestMemory: a diff of 100 MB is read in little memory, whatever it is made of.
func TestMemory(t *testing.T) {
	conform.Rule(t, "11-page diff", "At most 100 files or 500 kB stand in the page; further files are …")
	const size, most = 100 << 20, 20 << 20
	many := []byte("diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a := 1\n-b := 2\n+b := 3\n")
	line := bytes.Repeat([]byte("x"), 1<<20)
	pair := []byte("-a := some.function(of, arguments)\n+b := some.function(of, other, arguments)\n")
	headed := func(removed, added int, body io.Reader) io.Reader {
		head := fmt.Sprintf("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,%d +1,%d @@\n", removed, added)
		return io.MultiReader(strings.NewReader(head), body)
	}
	pairs := size / len(pair)
	for name, diff := range map[string]func() io.Reader{
		"files": func() io.Reader { return &repeated{piece: many, n: size / len(many)} },
		"lines": func() io.Reader { return headed(pairs, pairs, &repeated{piece: pair, n: pairs}) },
		"removed": func() io.Reader {
			piece := pair[:bytes.IndexByte(pair, '\n')+1]
			return headed(size/len(piece), 0, &repeated{piece: piece, n: size / len(piece)})
		},
		"one line": func() io.Reader {
			return headed(0, 1, io.MultiReader(strings.NewReader("+"), &repeated{piece: line, n: size >> 20}))
		},
		"no line end": func() io.Reader { return &repeated{piece: line, n: size >> 20} },
		"NUL": func() io.Reader {
			return headed(0, 1, io.MultiReader(strings.NewReader("+"), io.LimitReader(zero{}, size)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			for what, write := range map[string]func(io.Reader) error{
				"page": func(r io.Reader) error { _, err := Page(io.Discard, r, Options{Open: 1}); return err },
				"file": func(r io.Reader) error { _, err := File(io.Discard, r, 1, 0, Options{}); return err },
				"rest": func(r io.Reader) error {
					if err := Rest(io.Discard, r, ID{1, false, 1}, 50<<20, Options{}); err != ErrNone {
						return err
					}
					return nil
				},
			} {
				h := &heap{in: diff()}
				if err := write(h); err != nil {
					t.Fatal(err)
				}
				used := int64(h.peak) - int64(before.HeapAlloc)
				if used > most {
					t.Errorf("%s: %d MB of heap", what, used>>20)
				}
				t.Logf("%s: %d MB read, %.1f MB of heap", what, h.read>>20, float64(used)/(1<<20))
			}
		})
	}
}

type zero struct{}

func (zero) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// BenchmarkPage renders 41 files, each with three hunks of changed lines.
func BenchmarkPage(b *testing.B) {
	var diff bytes.Buffer
	for i := range 41 {
		fmt.Fprintf(&diff, "diff --git a/f%d.go b/f%d.go\nindex 1..2 100644\n--- a/f%d.go\n+++ b/f%d.go\n", i, i, i, i)
		for h := range 3 {
			fmt.Fprintf(&diff, "@@ -%d,8 +%d,8 @@ func f() {\n", h*50+1, h*50+1)
			diff.WriteString(" \tfor _, role := range slices.Sorted(maps.Keys(r.RoleBudgets)) {\n \t\tx := 1\n \t}\n" +
				"-\tif words := spentWords(r.Usage, r.Budget); words != \"\" {\n" +
				"-\t\tout = append(out, \"  \"+a.paint(dim, words))\n" +
				"+\tif said := spentWords(r.Usage, r.Limit); said != \"\" {\n" +
				"+\t\tout = append(out, \"  \"+a.paint(soft, \"used \"+said))\n" +
				" \t}\n \treturn out\n }\n")
		}
	}
	b.SetBytes(int64(diff.Len()))
	b.ReportAllocs()
	for b.Loop() {
		sum, err := Page(io.Discard, bytes.NewReader(diff.Bytes()), Options{})
		if err != nil || sum.Shown != 41 {
			b.Fatal(sum, err)
		}
	}
}
