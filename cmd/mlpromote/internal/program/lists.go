package program

// Listed makes an empty list of none, which JSON writes differently.
func Listed[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
