package consent

// Checks the shape of answers. Each reader returns false for a malformed answer.

func (f *fields) decision() Decision {
	given := "unknown"
	if _, ok := f.of["given"]; ok {
		given = f.text("given")
	}
	proof := f.inside(f.of["proof"])
	ref := proof.proofRef()
	f.require(!proof.bad)
	return Decision{
		Allowed:       f.boolean("allowed"),
		Reason:        f.text("reason"),
		Proof:         &ref,
		PolicyVersion: f.optionalInteger("policyVersion"),
		ExpiresAt:     f.optionalText("expiresAt"),
		Given:         given,
	}
}

func readDecision(of map[string]any) (Decision, bool) {
	f := &fields{of: of, bad: of == nil}
	decision := f.decision()
	return decision, !f.bad
}

// readBatch returns decisions by id; nil for an id that appears twice or whose decision is malformed.
func readBatch(of map[string]any) (map[string]*Decision, bool) {
	results, ok := of["results"].([]any)
	if !ok {
		return nil, false
	}
	found := make(map[string]*Decision, len(results))
	for _, result := range results {
		item, _ := result.(map[string]any)
		id, ok := item["id"].(string)
		if !ok {
			continue
		}
		_, isTwice := found[id]
		found[id] = nil
		if decision, ok := readDecision(item); ok && !isTwice {
			found[id] = &decision
		}
	}
	return found, true
}

func readWriteResult(f *fields) WriteResult {
	result := WriteResult{Entries: []WrittenEntry{}, ProofRef: f.proofRef()}
	for _, item := range f.list("entries") {
		entry := f.inside(item)
		result.Entries = append(result.Entries, WrittenEntry{entry.text("purpose"), entry.proofRef()})
		f.require(!entry.bad)
	}
	return result
}

func readState(f *fields) State {
	state := State{PrincipalID: f.text("principalId"), Purposes: []PurposeState{}}
	for _, item := range f.list("purposes") {
		one := f.inside(item)
		state.Purposes = append(state.Purposes, PurposeState{
			Purpose:  one.text("purpose"),
			Choice:   one.textOrNull("choice"),
			At:       one.textOrNull("at"),
			Decision: one.decision(),
		})
		f.require(!one.bad)
	}
	return state
}

func readHistory(f *fields) History {
	history := History{
		PrincipalID: f.text("principalId"),
		Events:      []Event{},
		NextCursor:  f.textOrNull("nextCursor"),
	}
	for _, item := range f.list("events") {
		one := f.inside(item)
		history.Events = append(history.Events, Event{
			Seq:           one.seq("seq"),
			Type:          one.text("type"),
			Purpose:       one.text("purpose"),
			Time:          one.text("time"),
			PolicyVersion: one.optionalInteger("policyVersion"),
			GPC:           one.boolean("gpc"),
			Source:        one.text("source"),
			ExpiresAt:     one.optionalText("expiresAt"),
			OverGPC:       one.optionalTrue("overGpc"),
		})
		f.require(!one.bad)
	}
	return history
}

func readSession(f *fields) Session {
	return Session{f.text("token"), f.text("principalId"), f.text("expiresAt")}
}

func readReceipt(f *fields) Receipt {
	return Receipt{f.object("receipt"), f.text("jws"), f.object("jwk")}
}

func readOutcome(f *fields) ReportedOutcome {
	return ReportedOutcome{f.text("requestId"), f.text("outcome"), f.text("at")}
}

func readHealth(f *fields) Health {
	health := Health{f.text("status"), f.text("version")}
	f.require(health.Status == "ok")
	return health
}

func readVerdict(f *fields) Verdict {
	verdict := Verdict{
		RequestID:  f.text("requestId"),
		Class:      f.text("class"),
		Reason:     f.text("reason"),
		VisitorID:  f.optionalText("visitorId"),
		DecidedAt:  f.text("decidedAt"),
		Restricted: f.boolean("restricted"),
		Fields:     f.of,
	}
	if f.of["confidence"] != nil {
		verdict.Confidence = f.number("confidence")
	}
	if f.of["suspectScore"] != nil {
		score := f.number("suspectScore")
		verdict.SuspectScore = &score
	}
	if f.of["attested"] != nil {
		attested := f.object("attested")
		by, _ := attested["by"].(string)
		bound, _ := attested["deviceBound"].(bool)
		verdict.Attested = &Attested{by, bound}
	}
	return verdict
}
