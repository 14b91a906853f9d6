package engine

type beside struct{}

func newBeside() *beside                                             { return nil }
func (b *beside) follow(w *sim, t *told, facts []Fact, pre *glimpse) {}
