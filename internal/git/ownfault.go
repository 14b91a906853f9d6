package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ownFault returns what git's complaint says about a folder of ours, which is not the fault of what
// the call is about; nil = nothing.
func ownFault(env []string, said string) error {
	for _, e := range env {
		key, dir, _ := strings.Cut(e, "=")
		switch key {
		case "GIT_DIR":
			// git says so too if it cannot open a file of the folder for lack of room
			if filepath.Base(dir) == shadowName && strings.Contains(said, "not a git repository: '"+dir+"'") {
				return fmt.Errorf("our own folder %s cannot be read", dir)
			}
		case "GIT_OBJECT_DIRECTORY":
			if err := removeEmpty(dir, said); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeEmpty removes the empty file of an object that git complains about. The error says so; nil
// = there is none.
// Git does not sync loose objects before it gives them their names, so that a power cut leaves some
// empty. Git then takes them for written, and never writes them again.
func removeEmpty(dir, said string) error {
	found := regexp.MustCompile(`/([0-9a-f]{2})/([0-9a-f]{38}(?:[0-9a-f]{24})?) is empty`).FindStringSubmatch(said)
	if found == nil {
		return nil
	}
	file := filepath.Join(dir, found[1], found[2])
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
		return nil //nolint:nilerr // it is another store's, or somebody was faster
	}
	gone := fmt.Errorf("object %s was empty, as a power cut leaves it: it is removed, to be written again",
		found[1]+found[2])
	return errors.Join(gone, os.Remove(file))
}
