package transcript

// Follower reads an output as it grows, each byte once. It is not for concurrent use.
type Follower struct {
	out  Output
	open func() ([]file, func(), error)
	say  func(raw) []Line // nil = nothing was read yet
	at   Pos
}

// Follow returns a follower that begins at the end of the output.
func (o Output) Follow() *Follower { return &Follower{out: o, open: o.open} }

// Limits of what More reads at once.
const (
	behindMost = MaxBytes
	filesMost  = 3 // of an output
)

// More returns the lines that have come since the last call; the first time, the newest part of the
// output. If more has come than a piece holds, or the place is not there any more, that is the newest
// part again, with Gap set. After ended, a last line without an end counts. More returns an error that
// wraps fs.ErrNotExist if there is no output.
func (f *Follower) More(ended bool) (Piece, error) {
	files, done, err := f.open()
	if err != nil {
		return Piece{}, err
	}
	defer done()
	files[len(files)-1].done = ended
	if i := find(files, f.at); f.say != nil && i >= 0 && behind(files[i:])-f.at.at <= behindMost {
		p, err := f.on(files)
		if err != nil || !p.More {
			return p, err
		}
	}
	gap := f.say != nil
	say := sayer(f.out.Format)
	p, err := f.out.end(files, say)
	if err != nil {
		return p, err
	}
	if gap && p.Later == f.at { // a line that is longer than a piece, and has not ended
		return Piece{Later: f.at}, nil
	}
	f.say, f.at, p.Gap = say, p.Later, gap
	return p, nil
}

// on returns what follows the place, over the ends of files.
func (f *Follower) on(files []file) (all Piece, err error) {
	for range filesMost {
		p, err := f.out.after(files, find(files, f.at), f.at.at, f.say)
		if err != nil {
			return all, err
		}
		all.Lines, all.Unsaid = append(all.Lines, p.Lines...), all.Unsaid+p.Unsaid
		all.Later, all.More = p.Later, p.More
		f.at = p.Later
		if !p.More {
			break
		}
	}
	return all, nil
}

// behind returns the size of files.
func behind(files []file) (n int64) {
	for _, f := range files {
		n += f.size
	}
	return n
}
