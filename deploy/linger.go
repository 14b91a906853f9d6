package deploy

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"

	"sluice/internal/fault"
)

// lingerDir has a file for each user whose services run while nobody is logged in.
const lingerDir = "/var/lib/systemd/linger"

// Lingers reports whether the user's services run while nobody is logged in.
func Lingers() bool {
	u, err := user.Current()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(lingerDir, u.Username))
	return err == nil
}

// Linger has the user's services run while nobody is logged in, or not any more.
func Linger(ctx context.Context, on bool) error {
	verb := "enable-linger"
	if !on {
		verb = "disable-linger"
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Errorf("service: %w", err)
	}
	// By name: without one it is about the owner of the session, who need not be who runs this (su).
	if out, err := command(ctx, "loginctl", verb, u.Username); err != nil {
		return fault.New("root may do it", "service: loginctl %s %s: %w: %s", verb, u.Username, err, out)
	}
	return nil
}
