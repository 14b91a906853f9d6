package journal

// reserveBytes is how much of the disk the journal keeps ahead of its end: what an agent fills cannot keep it from writing
// down what came of that. It is room for some thousand records.
const reserveBytes = 4 << 20

// reserver is a File that can have room kept behind its end, without becoming longer.
type reserver interface {
	Reserve(offset, size int64) error
}

// reserve keeps room behind the last record, where half of what was kept is used up. A disk that has no room for it, or a
// file system that knows no such thing, is no error: it is tried again when as much more was written. Only the leader
// calls it.
func (l *Log) reserve() {
	f, ok := l.file.(reserver)
	if !ok || l.head.end < l.reserveAt {
		return
	}
	l.reserveAt = l.head.end + reserveBytes/2
	_ = f.Reserve(l.head.end, reserveBytes)
}
