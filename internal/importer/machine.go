package importer

// passes chooses, for a machine of states, where the pass of each leads: the first of its targets to
// which a pass can go without a circle. Names without targets of their own are ends.
func passes(first string, targets map[string][]string) map[string]string {
	out := map[string]string{}
	leads := func(from, to string) bool {
		seen := map[string]bool{}
		for at := from; at != "" && !seen[at]; at = out[at] {
			if at == to {
				return true
			}
			seen[at] = true
		}
		return false
	}
	queue, seen := []string{first}, map[string]bool{}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, to := range targets[at] {
			if out[at] == "" && to != at && !leads(to, at) {
				out[at] = to
			}
			queue = append(queue, to)
		}
	}
	return out
}
