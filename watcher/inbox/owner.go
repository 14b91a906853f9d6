package inbox

import (
	"os/user"
	"strconv"

	"sluice/internal/atomicfile"
)

// owner returns the name of a file's owner; its number if it has no name, "" if unknown.
func owner(st atomicfile.Stat) string {
	if st == (atomicfile.Stat{}) {
		return ""
	}
	id := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
