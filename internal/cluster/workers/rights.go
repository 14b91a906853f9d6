package workers

import (
	"fmt"
	"strings"

	"sluice/internal/cluster"
)

// Rights returns a worker as a user of its account in the servers' configuration: its public key, and
// all that it may publish and subscribe to. It reads no heartbeat, order or answer of others. What it
// has JetStream send somewhere else is no order, and no heartbeat that counts: see the package.
func Rights(key, worker, journal string) string {
	list := func(subjects []string) string { return `"` + strings.Join(subjects, "\",\n        \"") + `"` }
	return fmt.Sprintf(`{ nkey: %s, permissions: {
    publish: { allow: [
        %s
    ] }
    subscribe: { allow: [
        %s
    ] }
    allow_responses: true
} }
`, key, list(append([]string{prefix + worker + beatEnd}, cluster.LaunchesSubjects(journal)...)),
		list([]string{prefix + worker + orderEnd, Inbox(worker) + ".>"}))
}
