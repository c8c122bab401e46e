package evidence

// OutputsDiffer reports whether an output of the engine is another than that of the reference.
func (r Report) OutputsDiffer() bool {
	for _, o := range r.Outputs {
		if o.Worst != nil || o.NewNaN > 0 || o.NewInf > 0 {
			return true
		}
	}
	return false
}
