package workflows

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/workspace"
)

// hooksDir is the folder of secrets in a repo's state folder: no agent in a sandbox sees it.
const hooksDir = "hooks"

// Limits of a secret, in bytes.
const (
	secretBytes = 32
	secretMost  = 1 << 10
)

// ErrNoSecret reports that requests for a workflow cannot be signed: nobody made a secret.
var ErrNoSecret = errors.New("there is no secret")

// Secret returns the secret that signs requests for a workflow.
func Secret(p *workspace.Workspace, workflow string) ([]byte, error) {
	if !ids.Valid(workflow) {
		return nil, ErrNoSecret
	}
	dir, name := filepath.Join(p.State, hooksDir), workflow+".secret"
	raw, _, err := atomicfile.OpenRegular(dir, name, secretMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoSecret
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fault.New("chmod 600 "+filepath.Join(dir, name)+", then sluice triggers secret "+workflow+" --new",
			"the secret of %s can be read by others", workflow)
	}
	if secret := strings.TrimSpace(string(raw)); len(secret) >= secretBytes {
		return []byte(secret), nil
	}
	return nil, fault.New("sluice triggers secret "+workflow+" --new makes another",
		"the secret of %s is too short", workflow)
}

// MakeSecret returns the secret of a workflow, and makes it if there is none or another is wanted.
func MakeSecret(p *workspace.Workspace, workflow string, another bool) ([]byte, error) {
	if _, err := File(p, workflow); err != nil {
		return nil, err
	}
	if !another {
		if secret, err := Secret(p, workflow); !errors.Is(err, ErrNoSecret) {
			return secret, err
		}
	}
	dir := filepath.Join(p.State, hooksDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // never fails
	secret := []byte(hex.EncodeToString(raw))
	return secret, atomicfile.Write(filepath.Join(dir, workflow+".secret"), append(secret, '\n'), 0o600)
}

// Refusal is a request for a workflow's webhook that was refused.
type Refusal struct {
	At  time.Time `json:"at,omitzero"`
	Why string    `json:"why,omitempty"`
}

func refusalFile(p *workspace.Workspace, workflow string) string {
	return filepath.Join(p.State, hooksDir, workflow+".refused.json")
}

// Refuse remembers a refused request for a workflow that has a secret.
func Refuse(p *workspace.Workspace, workflow string, r Refusal) error {
	return layout.Save(refusalFile(p, workflow), r)
}

// Refused returns the last refused request that is remembered; none is the zero value.
func Refused(p *workspace.Workspace, workflow string) (r Refusal) {
	if layout.Load(refusalFile(p, workflow), &r) != nil {
		return Refusal{}
	}
	return r
}
