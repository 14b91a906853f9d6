package review

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// Limits of the comparison of two lines.
const (
	maxWords = 400 // of a line
	maxCells = 40_000
	maxPairs = 400 // removed times added lines that are compared with one another
)

// Span is a part of a line, in bytes.
type Span struct{ From, To int }

// word is a part of a line: letters and digits, white space, or one other character.
type word struct {
	from, to int
	blank    bool
}

// split returns the words of a line; nil if it has too many.
func split(line []byte) []word {
	out := make([]word, 0, 32)
	const none, letters, blanks, other = 0, 1, 2, 3
	last := none
	for i := 0; i < len(line); {
		r, size := rune(line[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(line[i:])
		}
		is := other
		switch {
		case r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9',
			unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			is = letters
		case r == ' ', r == '\t':
			is = blanks
		}
		if is == last && is != other {
			out[len(out)-1].to = i + size
		} else if len(out) == maxWords {
			return nil
		} else {
			out = append(out, word{i, i + size, is == blanks})
		}
		last = is
		i += size
	}
	return out
}

// Differ returns which words of two lines differ; nothing if the lines have little in common, because
// marks in all of a line tell nothing.
func Differ(old, now []byte) (olds, news []Span) {
	a, b := split(old), split(now)
	same := func(i, j int) bool { return bytes.Equal(old[a[i].from:a[i].to], now[b[j].from:b[j].to]) }
	head := 0
	for head < len(a) && head < len(b) && same(head, head) {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && same(len(a)-1-tail, len(b)-1-tail) {
		tail++
	}
	n, m := len(a)-head-tail, len(b)-head-tail
	if len(a) == 0 || len(b) == 0 || n*m > maxCells {
		return nil, nil
	}
	keptA, keptB := common(n, m, func(i, j int) bool { return same(head+i, head+j) })
	mark := func(words []word, kept []bool) (out []Span, marked int) {
		for i, kept := range kept {
			w := words[head+i]
			if kept {
				continue
			}
			if !w.blank {
				marked += w.to - w.from
			}
			last, from := len(out)-1, w.from
			if i > 0 && words[head+i-1].blank {
				from = words[head+i-1].from
			}
			if last >= 0 && out[last].To >= from { // nothing but white space is between them
				out[last].To = w.to
			} else {
				out = append(out, Span{w.from, w.to})
			}
		}
		return out, marked
	}
	olds, inOld := mark(a, keptA)
	news, inNew := mark(b, keptB)
	if total := filled(old, a) + filled(now, b); (inOld+inNew)*10 > total*7 {
		return nil, nil
	}
	return olds, news
}

// filled returns how many bytes of a line are no white space.
func filled(line []byte, words []word) int {
	n := len(line)
	for _, w := range words {
		if w.blank {
			n -= w.to - w.from
		}
	}
	return n
}

// common returns which of n and m words belong to their longest common sequence.
func common(n, m int, same func(i, j int) bool) (a, b []bool) {
	kept := make([]bool, n+m)
	a, b = kept[:n], kept[n:]
	if n == 0 || m == 0 {
		return a, b
	}
	long := make([]uint16, (n+1)*(m+1))
	at := func(i, j int) *uint16 { return &long[i*(m+1)+j] }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if same(i, j) {
				*at(i, j) = *at(i+1, j+1) + 1
			} else {
				*at(i, j) = max(*at(i+1, j), *at(i, j+1))
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case same(i, j):
			a[i], b[j] = true, true
			i++
			j++
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	return a, b
}

// Pairs returns for each removed line the added one that it became, or -1: the pairs, in order, that
// have most in common. Of many lines, or of as many on both sides, it is the one at the same place.
func Pairs(old, now [][]byte) []int {
	out := make([]int, len(old))
	if len(old) == len(now) || len(old)*len(now) > maxPairs {
		for i := range out {
			out[i] = i
			if i >= len(now) {
				out[i] = -1
			}
		}
		return out
	}
	n, m := len(old), len(now)
	best, like := make([]int, (n+1)*(m+1)), make([]int, n*m)
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			like[i*m+j] = alike(old[i], now[j])
			best[i*(m+1)+j] = max(best[(i+1)*(m+1)+j], best[i*(m+1)+j+1], best[(i+1)*(m+1)+j+1]+like[i*m+j])
		}
	}
	for i := range out {
		out[i] = -1
	}
	for i, j := 0, 0; i < n && j < m; {
		switch here := best[i*(m+1)+j]; {
		case here == best[(i+1)*(m+1)+j]:
			i++
		case here == best[i*(m+1)+j+1]:
			j++
		default:
			out[i] = j
			i++
			j++
		}
	}
	return out
}

// alike returns how many bytes two lines have in common at their beginnings and ends, without white
// space around them.
func alike(a, b []byte) int {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head + tail
}
