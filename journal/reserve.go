package journal

// reserveBytes is the disk space reserved behind the journal's end, enough for a few thousand
// records. A disk filled by an agent then cannot keep the journal from recording the result.
const reserveBytes = 4 << 20

// reserver is a File that can reserve space behind its end without growing.
type reserver interface {
	Reserve(offset, size int64) error
}

// reserve reserves space behind the last record once half of the previous reservation is used. A
// full disk, or a file system without reservations, is no error: it tries again after as much has
// been written. Only the leader calls it.
func (l *Log) reserve() {
	f, ok := l.file.(reserver)
	if !ok || l.head.end < l.reserveAt {
		return
	}
	l.reserveAt = l.head.end + reserveBytes/2
	_ = f.Reserve(l.head.end, reserveBytes)
}
