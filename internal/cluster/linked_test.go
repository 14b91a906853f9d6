package cluster

import (
	"os/exec"
	"strings"
	"testing"
)

// The client of NATS is in the binary, the server is not.
func TestServerIsNotLinkedIn(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../cmd/sluice").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "github.com/nats-io/nats.go") || strings.Contains(string(out), "nats-server") {
		t.Error("sluice must have the client of NATS, and no part of its server")
	}
}
