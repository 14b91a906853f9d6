package forgestub

import (
	"os"
	"path/filepath"
)

// Environ writes what gh and git need into a folder, and returns the variables that name it.
func (f *Forge) Environ(dir string) ([]string, error) {
	cert := filepath.Join(dir, "ca.pem")
	if err := os.MkdirAll(filepath.Join(dir, "gh"), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(cert, f.Cert(), 0o600); err != nil {
		return nil, err
	}
	return []string{"SSL_CERT_FILE=" + cert, "GH_HOST=" + f.Host(), "GH_ENTERPRISE_TOKEN=" + Token,
		"GH_CONFIG_DIR=" + filepath.Join(dir, "gh"), "GIT_TERMINAL_PROMPT=0"}, nil
}
