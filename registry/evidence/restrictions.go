package evidence

// OnlyRestricts reports whether the state of the signer's key lets a restriction list add
// restrictions, and not lift any.
func (c Claim) OnlyRestricts() bool { return c.KeyRefuses() != "" }
