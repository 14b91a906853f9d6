package gates

import (
	"path"
	"slices"
	"strings"
)

// Matches reports whether a path matches a glob: * and ? within a name, ** for any number of
// folders, including none. A glob that names a folder matches all its contents.
func Matches(glob, name string) bool {
	parts := strings.Split(path.Clean(glob), "/")
	inside := false // the glob ends in **: something must be in the folder
	for len(parts) > 0 && parts[len(parts)-1] == "**" {
		parts, inside = parts[:len(parts)-1], true
	}
	names := strings.Split(name, "/")
	fits := matched(parts, names)
	if inside {
		fits = fits[:len(names)]
	}
	return slices.Contains(fits, true)
}

// fixed returns the start of a glob that names have as it is.
func fixed(glob string) string {
	if i := strings.IndexAny(glob, `*?[\`); i >= 0 {
		return glob[:i]
	}
	return glob
}

// matched reports for each i whether the pattern matches names[:i]. ** matches any number of names.
// Each pair of part and name is compared once, however many ** there are.
func matched(pattern, names []string) []bool {
	fits := make([]bool, len(names)+1)
	fits[0] = true
	for _, part := range pattern {
		next := make([]bool, len(names)+1)
		for i := range fits {
			switch {
			case part == "**":
				next[i] = fits[i] || i > 0 && next[i-1]
			case i > 0 && fits[i-1]:
				ok, err := path.Match(part, names[i-1])
				next[i] = ok && err == nil
			}
		}
		fits = next
	}
	return fits
}
