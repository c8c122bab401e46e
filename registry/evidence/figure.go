package evidence

func stricter(atLeast bool, limit, than Figure) bool {
	if atLeast {
		return limit >= than
	}
	return limit <= than
}
