package registry

// peek decodes the predicate of a signed bundle of at most size bytes, without verifying its signature.
func peek(bundle []byte, size int, predicateType string, predicate any) error {
	var document struct {
		Envelope struct {
			Payload []byte `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	var s Statement
	if len(bundle) > size {
		return Errorf(CodeTrust, "%d bytes, want at most %d", len(bundle), size)
	}
	err := DecodeSigned(bundle, &document)
	if err == nil {
		err = DecodeSigned(document.Envelope.Payload, &s)
	}
	if err == nil && s.PredicateType != predicateType {
		err = Errorf(CodeTrust, "predicate type %.200q, want %q", s.PredicateType, predicateType)
	}
	if err == nil {
		err = DecodeSigned(s.Predicate, predicate)
	}
	return err
}
