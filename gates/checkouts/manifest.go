package checkouts

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
)

// maxManifest is how many bytes of a manifest are read: a file needs about 200.
const maxManifest = 1 << 30

// manifest is the state of a checkout when it was last complete.
type manifest struct {
	commit string
	files  map[string]known
}

// known is a file as it was written.
type known struct {
	object string // with its mode
	state  string // of the file, see stateOf
}

// stateOf returns a key that changes with any change to a file; "" if the system reports too
// little.
func stateOf(info fs.FileInfo) string {
	st := atomicfile.StatOf(info)
	if st.Ino == 0 || st.Changed.IsZero() || st.Nlink != 1 {
		return ""
	}
	return fmt.Sprintf("%x.%x.%x.%x.%x.%x", st.Dev, st.Ino, st.Size, st.ModTime.UnixNano(), st.Changed.UnixNano(),
		uint32(st.Mode))
}

// head begins a manifest. A manifest with another head is not trusted.
func head(start string) string {
	sum := sha256.Sum256([]byte(start))
	return "checkout 1 " + hex.EncodeToString(sum[:8]) + " "
}

// read returns the record of the checkout; empty if it is not trusted.
func (s seat) read() manifest {
	m := manifest{files: map[string]known{}}
	data, _, err := atomicfile.OpenRegular(s.dir, manifestName, maxManifest)
	if err != nil {
		return m
	}
	first, rest, ok := bytes.Cut(data, []byte{0})
	commit, ours := strings.CutPrefix(string(first), head(s.start))
	if !ok || !ours {
		return m
	}
	text := string(rest)
	for text != "" {
		var line string
		if line, text, ok = strings.Cut(text, "\x00"); !ok {
			return manifest{files: map[string]known{}}
		}
		words := strings.SplitN(line, " ", 3)
		if len(words) != 3 {
			return manifest{files: map[string]known{}}
		}
		m.files[words[2]] = known{object: words[0], state: words[1]}
	}
	m.commit = commit
	return m
}

// write records the state of the checkout, atomically. It is not synced, as nothing trusts it after
// a reboot.
func (s seat) write(commit string, files []file) error {
	f, err := os.CreateTemp(s.dir, ".manifest-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	w := bufio.NewWriterSize(f, 1<<20)
	w.WriteString(head(s.start) + commit + "\x00")
	for _, e := range files {
		if e.state != "" {
			w.WriteString(e.object() + " " + e.state + " " + e.Path + "\x00")
		}
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.file(manifestName))
}

// commitOf returns the commit of a checkout's last update, to find one that needs little work.
func commitOf(dir string) string {
	f, err := os.Open(filepath.Join(dir, manifestName))
	if err != nil {
		return ""
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(f, 512).ReadString(0)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(line[strings.LastIndexByte(line, ' ')+1:], "\x00")
}
