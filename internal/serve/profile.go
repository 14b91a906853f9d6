package serve

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"sluice/internal/console"
	"sluice/internal/fault"
)

// ProfileFolder is the variable that names a folder for the daemon's profiles, for measuring it.
const ProfileFolder = "SLUICE_PROFILE"

// startProfile records CPU time in cpu.pprof and all allocations in allocs.pprof, if ProfileFolder
// is set. The returned function writes them.
func startProfile(con *console.Console) (end func() error, err error) {
	dir := con.Getenv(ProfileFolder)
	if dir == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		return nil, fault.New("name an existing folder", "%s: %w", ProfileFolder, err)
	}
	return func() error {
		pprof.StopCPUProfile()
		runtime.GC() // it counts what was freed lately
		out, err := os.Create(filepath.Join(dir, "allocs.pprof"))
		if err == nil {
			err = errors.Join(pprof.Lookup("allocs").WriteTo(out, 0), out.Close())
		}
		return errors.Join(f.Close(), err)
	}, nil
}
