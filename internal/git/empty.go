package git

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// removeEmpty removes the empty file of an object that git complains about, and returns its name.
// Git does not sync loose objects before it gives them their names, so that a power cut leaves some
// empty. Git then takes them for written, and never writes them again.
func removeEmpty(env []string, said string) (object string, err error) {
	found := regexp.MustCompile(`/([0-9a-f]{2})/([0-9a-f]{38}(?:[0-9a-f]{24})?) is empty`).FindStringSubmatch(said)
	if found == nil {
		return "", nil
	}
	for _, e := range env {
		dir, is := strings.CutPrefix(e, "GIT_OBJECT_DIRECTORY=")
		if !is {
			continue
		}
		file := filepath.Join(dir, found[1], found[2])
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
			return "", nil //nolint:nilerr // it is another store's, or somebody was faster
		}
		return found[1] + found[2], os.Remove(file)
	}
	return "", nil
}
