package consent

import "encoding/json"

// Reads answers whose shape was checked.

// decode fills a result with the fields that the shape of the operation names.
func decode(operation string, body []byte, result any) (whole map[string]any, ok bool) {
	whole = parseObject(body)
	return whole, whole != nil && decodeValue(operation, whole, result)
}

func decodeValue(operation string, value, result any) bool {
	found, ok := shaped(value, operations[operation].shape)
	if !ok {
		return false
	}
	// The fields have their exact names now, so that Unmarshal cannot take another one.
	text, err := json.Marshal(found)
	return err == nil && json.Unmarshal(text, result) == nil
}

func readDecision(of any) (Decision, bool) {
	decision := Decision{Given: "unknown"}
	ok := decodeValue("canProcess", of, &decision)
	return decision, ok
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

// wireVerdict has the names of the wire, which Verdict does not carry.
type wireVerdict struct {
	RequestID, Class, Reason, DecidedAt, Ref, Context string
	VisitorID                                         *string
	Confidence                                        float64
	SuspectScore                                      *float64
	Restricted                                        bool
}

func readVerdict(whole map[string]any, of wireVerdict) Verdict {
	verdict := Verdict{
		RequestID: of.RequestID, Class: of.Class, Reason: of.Reason, VisitorID: of.VisitorID, Confidence: of.Confidence,
		DecidedAt: of.DecidedAt, SuspectScore: of.SuspectScore, Restricted: of.Restricted, Ref: of.Ref, Context: of.Context, Fields: whole,
	}
	if attested, ok := whole["attested"].(map[string]any); ok {
		by, _ := attested["by"].(string)
		bound, _ := attested["deviceBound"].(bool)
		verdict.Attested = &Attested{by, bound}
	}
	return verdict
}
