package git

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestStreamPatch: the stream has what Between has, and a reader may stop.
func TestStreamPatch(t *testing.T) {
	s := newSandbox(t)
	base := s.git("rev-parse", "HEAD")
	s.write("a.txt", strings.Repeat("line\n", 100_000))
	s.write(".gitattributes", "* -diff\n")
	tip := s.commit("more")
	r := s.open()
	want, _, err := r.Between(ctx(t), base, tip, 1<<20, Look{Paths: []string{"a.txt"}})
	check(t, err)
	var got []byte
	check(t, StreamPatch(ctx(t), r, base, tip, Look{Paths: []string{"a.txt"}}, func(in io.Reader) (err error) {
		got, err = io.ReadAll(in)
		return err
	}))
	_, hunks, ok := strings.Cut(string(got), "\n---")
	_, wanted, _ := strings.Cut(string(want), "\n---")
	blob := s.git("rev-parse", "HEAD:a.txt")
	if !ok || hunks != wanted || !strings.Contains(string(got), ".."+blob+" 100644\n") {
		t.Errorf("%.200s, want %.200s with %s", got, want, blob)
	}
	stop := errors.New("stop")
	if err := StreamPatch(ctx(t), r, "", tip, Look{}, func(io.Reader) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	check(t, StreamPatch(ctx(t), r, base, tip, Look{}, func(io.Reader) error { return nil }))
	if err := StreamPatch(ctx(t), r, "main", tip, Look{}, func(io.Reader) error { return nil }); err == nil {
		t.Error("a name that is no object")
	}
	gone := strings.Repeat("1", len(tip))
	if err := StreamPatch(ctx(t), r, base, gone, Look{}, func(io.Reader) error { return nil }); err == nil {
		t.Error("a commit that is not there")
	}
}

func TestBlobStart(t *testing.T) {
	s := newSandbox(t)
	s.write("a.txt", strings.Repeat("line\n", 100_000))
	s.commit("more")
	r := s.open()
	blob := s.git("rev-parse", "HEAD:a.txt")
	for most, want := range map[int64]int{3: 3, 500_000: 500_000, 1 << 20: 500_000} {
		if text, err := BlobStart(ctx(t), r, blob, most); err != nil || len(text) != want {
			t.Errorf("%d: %d bytes, want %d (%v)", most, len(text), want, err)
		}
	}
	if text, err := BlobStart(ctx(t), r, strings.Repeat("1", len(blob)), 9); err == nil {
		t.Errorf("%q", text)
	}
	if text, err := BlobStart(ctx(t), r, "HEAD:a.txt", 9); err == nil {
		t.Errorf("%q", text)
	}
}
