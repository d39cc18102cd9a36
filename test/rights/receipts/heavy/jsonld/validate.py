"""Reads a document of receipts with PyLD and judges it with pySHACL.

  validate.py DOCUMENT SHAPE

Exit 0: it conforms. Exit 1: the report of pySHACL, or the number of values that JSON-LD lost.
"""
import json
import sys

import pyshacl
import rdflib
from pyld import jsonld


def refuse_network(url, options):
    raise ValueError(f'the document asks for {url}')


def count_values(value):
    if isinstance(value, dict):
        return sum(count_values(one) for key, one in value.items() if key != '@context')
    if isinstance(value, list):
        return sum(count_values(one) for one in value)
    return 0 if value is None else 1


def count_expanded(value):
    if isinstance(value, dict):
        if '@value' in value:
            return 1
        return sum(count_expanded(one) for one in value.values())
    if isinstance(value, list):
        return sum(count_expanded(one) for one in value)
    return 1


document, shape = sys.argv[1:]
with open(document, encoding='utf8') as file:
    receipts = json.load(file)
options = {'documentLoader': refuse_network}
expanded = jsonld.expand(receipts, options)
lost = count_values(receipts) - count_expanded(expanded)
if lost:
    sys.exit(f'{lost} values have no meaning in the context')
data = rdflib.Graph().parse(data=jsonld.to_rdf(receipts, {**options, 'format': 'application/n-quads'}), format='nt')
terms = sorted({str(term) for triple in data for term in triple if str(term).startswith('https://w3id.org/dpv#')})
conforms, _, report = pyshacl.validate(data, shacl_graph=rdflib.Graph().parse(shape))
subjects = len(set(data.subjects(rdflib.RDF.type, rdflib.URIRef('https://w3id.org/dpv#ConsentReceipt'))))
print(json.dumps({'receipts': subjects, 'triples': len(data), 'terms': terms}))
if not conforms or subjects == 0:
    sys.exit(report)
