package deploy

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sluice/internal/atomicfile"
)

// putDownFile holds, in the daemon's folder, when what ran was last ended on purpose: with the
// service, or with the machine.
const putDownFile = "put-down"

// NotePutDown keeps when the service was stopped or the machine went down; an end by a crash is not noted.
func NotePutDown(home string, why End, at time.Time) error {
	if why == EndCrash {
		return nil
	}
	if err := atomicfile.Write(filepath.Join(home, putDownFile), []byte(at.UTC().Format(time.RFC3339Nano)+"\n"),
		0o600); err != nil {
		return fmt.Errorf("service: that this end was wanted could not be noted: %w: the agents' next launches count as "+
			"after a crash", err)
	}
	return nil
}

// PutDown is when what ran was last ended on purpose; zero: never, or it cannot be read.
func PutDown(home string) time.Time {
	data, _, err := atomicfile.OpenRegular(home, putDownFile, 64)
	if err != nil {
		return time.Time{}
	}
	at, _ := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(data))) // zero with an error
	return at
}
