import type { PageWords, ScriptWords } from './words.ts';

/** The texts of people's pages in German. */

export const PAGE: PageWords = {
  'site.language': 'Sprache',
  'site.unnamed': 'Geräteprüfung',
  'class.human': 'Ein Mensch',
  'class.declared_agent': 'Ein angemeldeter Agent',
  'class.undeclared_automation': 'Ein automatischer Besuch',
  'class.unknown': 'Nicht entschieden',
  copy: 'Kopieren',
  copied: 'Kopiert',
  print: 'Drucken',
  until: 'Sie können das bis {until} benutzen, fünf Minuten nach dem Besuch.',
  'text.left': 'Noch {count} Zeichen.',
  'text.full': 'Das ist die Grenze von {limit} Zeichen. Mehr passt nicht hinein.',
  'class.agent': 'Eine Anfrage, die die Regeln dieser Website für Agenten abgelehnt haben',
  'held.title': 'Was die Geräteprüfung dieser Website über Sie speichert',
  'site.missing': 'Hier hat keine Website diesen Namen.',
  'site.one': 'Eine Website benutzt diese Adresse. Meinen Sie diese?',
  'site.many': 'Mehrere Websites benutzen diese Adresse. Welche meinen Sie?',
  'site.enter':
    'Diese Adresse gehört zu mehreren Websites. Folgen Sie dem Link der Website, die Sie besucht haben, oder geben Sie ihren Namen ein, wie er in ihrer Datenschutzerklärung steht.',
  'site.name': 'Name der Website',
  'site.continue': 'Weiter',
  'held.script':
    'Diese Seite braucht JavaScript, um nachzusehen, was über Ihren Browser gespeichert ist. Ohne JavaScript läuft auch die Geräteprüfung nicht, von diesem Besuch ist also nichts gespeichert.',
  'ways.title': 'Wege, die jetzt keine Prüfung brauchen',
  'ways.visit':
    'Waren Sie in den letzten fünf Minuten auf der Website? Benutzen Sie den Link dort: Er kann diesen Besuch zeigen.',
  'ways.case': 'Ein Einwand, den Sie erhoben haben: {link} mit seinem Schlüssel.',
  'ways.caseLink': 'öffnen Sie Ihren Fall',
  'ways.write':
    'Alles andere: Schreiben Sie an {contact}. Wenn Sie die Nummer einer Entscheidung haben (sie beginnt mit {prefix}), nennen Sie sie.',
  'ways.unnamed':
    'Alles andere: Diese Website hat keinen Kontakt genannt. Wenn Sie die Nummer einer Entscheidung haben (sie beginnt mit {prefix}), nennen Sie sie, wenn Sie die Website fragen.',
  'verdict.human': 'Es sah so aus, als ob ein Mensch Ihren Browser bedient',
  'verdict.declared_agent': 'Ein Programm, das sich zu erkennen gibt, hat diesen Besuch gemacht',
  'verdict.undeclared_automation': 'Es sah so aus, als ob ein Programm Ihren Browser bedient',
  'verdict.unknown': 'Es war nicht klar, wer Ihren Browser bedient',
  'verdict.reviewed': 'Dieser Besuch zählt als der eines Menschen',
  'verdict.checked': 'Unsere Prüfung hat das am {at} entschieden. Kein Mensch hat es angesehen.',
  'verdict.doubt':
    'Unsere Prüfung hat das am {at} entschieden. Kein Mensch hat es angesehen. Sie kann sich irren, zum Beispiel wenn Sie einen Screenreader oder ein anderes Hilfsmittel benutzen.',
  'verdict.confirmed':
    'Ein Mensch hat am {at} geprüft und bestätigt, dass ein Mensch dieses Gerät benutzt. Die Anzeichen zählen nicht mehr gegen Sie.',
  'verdict.overturned':
    'Ein Mensch hat entschieden: Ein Mensch benutzt dieses Gerät. Die Anzeichen zählen nicht mehr gegen Sie.',
  'verdict.alike':
    'Geräte, die so aussehen wie dieses, wurden geprüft. Sie zählen als die von Menschen. Die Anzeichen zählen nicht gegen Sie.',
  'verdict.nobody':
    'Dieser Browser zeigt zu wenig, um wiedererkannt zu werden. Diese Entscheidung gehört zu keinem Gerät.',
  'object.open': 'Das stimmt nicht – bitte prüfen',
  'object.note': 'Kostenlos, ohne Konto. Antwort fällig bis {due}.',
  'object.what': 'Ein Mensch prüft es, und Sie sehen, bis wann. Bis dahin soll niemand danach handeln.',
  'object.statement': 'Was ist geschehen, in Ihren Worten? Ein Satz genügt.',
  'object.email':
    'E-Mail-Adresse, wenn wir Ihnen zur Prüfung schreiben dürfen. Sie wird verschlüsselt gespeichert und mit dem Fall gelöscht.',
  'object.file': 'Um Prüfung bitten',
  'object.other':
    'Sie können es von einem Menschen prüfen lassen. Schreiben Sie an {contact} und nennen Sie die Nummer.',
  'object.otherUnnamed':
    'Sie können es von einem Menschen prüfen lassen. Diese Website hat keinen Kontakt genannt. Schreiben Sie der Website und nennen Sie die Nummer.',
  'contest.title': 'Ihr Einwand',
  'contest.open':
    'Sie haben um eine Prüfung gebeten. Wir antworten bis {due}. Bis dahin soll niemand nach dieser Entscheidung handeln.',
  'contest.agreed':
    'Die Prüfung vom {at} hat Ihnen recht gegeben. Die Entscheidung war „{class}“, und dabei bleibt es.',
  'contest.overturned': 'Die Prüfung vom {at} hat das aufgehoben: Ein Mensch benutzt dieses Gerät.',
  'contest.upheld': 'Die Prüfung vom {at} hat das bestätigt. Die Entscheidung bleibt.',
  'contest.number': 'Fallnummer',
  'contest.statement': 'Was Sie geschrieben haben',
  'contest.longer': 'Warum es länger dauert',
  'contest.question': 'Die Frage an Sie',
  'contest.reason': 'Begründung',
  'contest.link': 'Ihren Fall öffnen',
  'why.title': 'Warum es so aussah',
  'why.reviewed': 'Anzeichen, die nicht zählen',
  'why.none': 'Es gab kein Anzeichen für ein Programm.',
  'why.all': 'Alle Anzeichen und der Punktwert',
  'why.score': 'Punktwert: {score} von 1',
  'why.highest': 'Punktwert: 1 von 1 (der höchste)',
  'why.calmed': 'Punktwert: {score} von 1, wegen der Prüfung.',
  'why.before': 'Punktwert bei der Entscheidung: {score} von 1. Die Prüfung hat sie aufgehoben.',
  'why.number': 'Nummer dieser Entscheidung: {number}',
  'why.seen': 'Ihr Gerät war schon einmal hier.',
  'why.first': 'Ihr Gerät war zum ersten Mal hier.',
  'kept.title': 'Was wir speichern, und wie lange',
  'kept.shared':
    'Viele Geräte sehen so aus wie dieses, deshalb kann seine Kennung auch zu anderen Menschen gehören. Diese Seite zeigt daher nur diesen Besuch.',
  'kept.attested':
    'Ein Passkey hat dieses Gerät von gleich aussehenden unterschieden. Wer es benutzt hat, zeigt das nicht.',
  'kept.decisions': 'Entscheidungen über dieses Gerät: {count}',
  'kept.newest': 'Gezeigt werden die neuesten {count}. Die Datei enthält alle.',
  'kept.noSignals':
    'Einzelne Merkmale sind hier nicht gespeichert: nur die Entscheidungen und eine verschlüsselte Zahl, an der das Gerät wiedererkannt wird.',
  'kept.signals': 'Was dieses Gerät unterscheidet',
  'kept.few':
    'Hier sind zu wenige Geräte bekannt, um zu sagen, wie selten Ihres ist. Die Tabelle zeigt, was Studien über viele Browser für solche Merkmale ergaben.',
  'kept.narrow': 'Zusammen grenzen sie es auf etwa 1 von {count} Besuchen ein.',
  'kept.signal': 'Merkmal',
  'kept.gives': 'Verrät',
  'kept.bits': '{bits} Bit',
  'kept.handle': 'Kurzzeichen dieses Geräts, zum Vergleichen mit dem Auge',
  'band.common': 'wenig: häufig',
  'band.uncommon': 'etwas: weniger häufig',
  'band.rare': 'viel: selten',
  'band.not enough data': 'zu wenige Daten',
  'signal.architecture': 'Prozessorfamilie',
  'signal.audio': 'Wie Ton berechnet wird',
  'signal.bitness': 'Breite des Prozessors',
  'signal.canvas': 'Wie Grafik gezeichnet wird',
  'signal.colorDepth': 'Farben des Bildschirms',
  'signal.cores': 'Prozessorkerne',
  'signal.errorMessage': 'Wortlaut von Fehlern',
  'signal.evalLength': 'Länge des eingebauten Codes',
  'signal.family': 'Browser und System',
  'signal.fonts': 'Installierte Schriften',
  'signal.gamut': 'Farbumfang',
  'signal.gpu': 'Grafikchip',
  'signal.hdr': 'Hoher Kontrastumfang',
  'signal.math': 'Wie Zahlen gerundet werden',
  'signal.memory': 'Arbeitsspeicher, in Stufen',
  'signal.model': 'Gerätemodell',
  'signal.screen': 'Größe des Bildschirms',
  'signal.touch': 'Berührungspunkte',
  'who.title': 'Wer es bekommt',
  'who.responsible': 'Verantwortlich',
  'who.purposes': 'Wofür es benutzt wird',
  'who.recipients': 'Wer es bekommt',
  'who.transfers': 'In andere Länder geschickt',
  'rights.title': 'Ihre Rechte',
  'rights.access': 'Auskunft: sehen, was gespeichert ist, auf dieser Seite oder als Datei.',
  'rights.rectification': 'Berichtigung: Falsches berichtigen lassen.',
  'rights.erasure': 'Löschung, auf dieser Seite.',
  'rights.restriction':
    'Einschränkung: Solange ein Einwand offen ist, soll niemand nach der Entscheidung handeln.',
  'rights.portability': 'Übertragbarkeit: eine Kopie zum Mitnehmen, als Datei für Programme.',
  'rights.review': 'Prüfung jeder automatischen Entscheidung durch einen Menschen.',
  'rights.withdrawal': 'Widerruf Ihrer Einwilligung, zu jeder Zeit.',
  'rights.complaint': 'Beschwerde bei der Aufsichtsbehörde: {authority}',
  'take.title': 'Kopie speichern',
  'take.page': 'Als Seite speichern',
  'take.json': 'Als JSON speichern',
  'foot.responsible': 'Verantwortlich ist {controller}.',
  'foot.write': 'Schreiben Sie an {contact} und nennen Sie {number}.',
  'foot.quote': 'Wenn Sie die Website fragen, nennen Sie {number}.',
  'erase.visit': 'Diesen Besuch löschen',
  'erase.device': 'Löschen, was über dieses Gerät gespeichert ist',
  'erase.onHold':
    'Eine rechtliche Sperre hält fest, was über dieses Gerät gespeichert ist, deshalb kann jetzt nichts gelöscht werden. Halten Sie Ihre Bitte fest: Sie bekommen eine Quittung, die sagt, was bleibt und warum.',
  'erase.shared':
    'Das löscht nur diesen Besuch: seine Entscheidung und deren Gründe. Es kann nicht rückgängig gemacht werden. Andere Besuche dieses Geräts bleiben, weil seine Kennung auch zu anderen Menschen gehören kann. Um frühere löschen zu lassen, schreiben Sie an {contact}; vielleicht müssen Sie zeigen, dass es Ihre waren.',
  'erase.sharedUnnamed':
    'Das löscht nur diesen Besuch: seine Entscheidung und deren Gründe. Es kann nicht rückgängig gemacht werden. Andere Besuche dieses Geräts bleiben, weil seine Kennung auch zu anderen Menschen gehören kann. Um frühere löschen zu lassen, fragen Sie die Website; vielleicht müssen Sie zeigen, dass es Ihre waren.',
  'erase.one':
    'Das löscht die Entscheidung oben mit den Gründen und die verschlüsselte Zahl, an der dieses Gerät wiedererkannt wird. Es kann nicht rückgängig gemacht werden. Eine Prüfung zu Ihren Gunsten bleibt.',
  'erase.all':
    'Das löscht alle {count} Entscheidungen oben mit den Gründen und die verschlüsselte Zahl, an der dieses Gerät wiedererkannt wird. Es kann nicht rückgängig gemacht werden. Eine Prüfung zu Ihren Gunsten bleibt.',
  'erase.open':
    'Sie haben um eine Prüfung gebeten, die noch nicht beantwortet ist. Wir antworten bis {due} (Fallnummer {number}). Der Fall und die Entscheidung, um die es geht, bleiben.',
  'erase.after':
    'Danach kann Ihnen niemand diese Entscheidungen erklären. Wenn ein Mensch eine davon prüfen soll, bitten Sie vorher darum, oder speichern Sie sie.',
  'erase.record': 'Meine Bitte festhalten',
  'erase.now': 'Jetzt löschen',
  'forgotten.none': 'Vergessen: Es war nichts mehr gespeichert.',
  'forgotten.kept': 'Nichts wurde gelöscht. Die Liste unten sagt, was bleibt und warum.',
  'forgotten.some': 'Nicht alles wurde gelöscht. Die Liste unten sagt, was bleibt und warum.',
  'forgotten.visit':
    'Nur dieser Besuch wurde gelöscht. Ähnliche Geräte teilen sich eine Kennung, die anderen können also zu anderen Menschen gehören.',
  'forgotten.visitPending':
    'Nur dieser Besuch wird gerade gelöscht. Ähnliche Geräte teilen sich eine Kennung, die anderen können also zu anderen Menschen gehören.',
  'forgotten.device': 'Vergessen: Die Entscheidungen über dieses Gerät und seine Kennzahl wurden gelöscht.',
  'forgotten.devicePending':
    'Vergessen: Die Entscheidungen über dieses Gerät und seine Kennzahl werden gerade gelöscht.',
  'forgotten.title': 'Was gelöscht wurde',
  'forgotten.titleKept': 'Nichts wurde gelöscht',
  'forgotten.empty': 'Es war nichts mehr gespeichert.',
  'forgotten.others':
    'Kein anderer Besuch wurde gelöscht, weil Geräte anderer Menschen gleich aussehen: Was unter dieser Kennung steht, kann ihnen gehören. Wenn dieser Browser wiederkommt, wird er wie bisher erkannt.',
  'forgotten.write':
    'Um den Rest löschen zu lassen, schreiben Sie an den Kontakt unten und nennen Sie die Quittung. Vielleicht müssen Sie zeigen, dass diese Besuche Ihre waren.',
  'forgotten.ask':
    'Um den Rest löschen zu lassen, nennen Sie die Quittung, wenn Sie der Website schreiben. Vielleicht müssen Sie zeigen, dass diese Besuche Ihre waren.',
  'forgotten.consent':
    'Der Nachweis Ihrer Einwilligung bleibt als Beleg, und keine Löschung hier berührt ihn.',
  'forgotten.receipt': 'Nummer der Quittung',
  'forgotten.contact': 'Kontakt',
  'scope.sightings': 'wann und wie oft das Gerät gesehen wurde',
  'scope.visitor-index': 'seine Besucherkennungen',
  'scope.decisions': 'Entscheidungen',
  'scope.contests': 'Einwände',
  'scope.override': 'die Prüfung zu Ihren Gunsten',
  'scope.links': 'Verbindungen zu einem Konto',
  'scope.signal-summaries': 'wie selten seine Merkmale sind',
  'scope.network-marks': 'aus wie vielen Netzen es kam',
  'scope.credentials': 'sein Passkey',
  'scope.consent': 'der Nachweis Ihrer Einwilligung',
  'scope.backups': 'frühere Sicherungen',
  'scope.storage': 'die Dateien der Datenbank',
  'action.erased': 'gelöscht',
  'action.pending': 'gelöscht; die Dateien können noch Reste davon enthalten',
  'action.retained': 'behalten',
  'action.failed': 'noch nicht gelöscht; gpd versucht es wieder',
  'action.storage': 'auch daraus entfernt',
  'filed.told': 'Ihr Einwand ist eingegangen. Ein Mensch wird ihn prüfen.',
  'filed.toldAgain': 'Nichts Neues ist eingegangen: Um eine Prüfung dieser Entscheidung wurde schon gebeten.',
  'filed.title': 'Ein Mensch wird es prüfen',
  'filed.titleAgain': 'Um eine Prüfung dieser Entscheidung wurde schon gebeten',
  'filed.due': 'Wir antworten bis {due}. Um die Antwort zu lesen, brauchen Sie diesen Schlüssel.',
  'filed.key': 'Ihr Fallschlüssel, nur einmal gezeigt',
  'filed.keep':
    'Bewahren Sie ihn auf: Nur mit ihm kommen Sie zu Ihrem Fall zurück. Wer ihn hat, kann den Fall lesen und für Sie antworten.',
  'filed.open':
    'Sie ist offen. Der Schlüssel des Falls wurde gezeigt, als um die Prüfung gebeten wurde, und kann nicht noch einmal gezeigt werden.',
  'filed.decided': 'Sie ist entschieden. Sehen Sie dieses Gerät noch einmal nach, um zu lesen, wie.',
  'filed.filed': 'Eingegangen',
  'filed.dueBy': 'Wir antworten bis',
  'remember.note':
    'Dieser Browser merkt sich den Schlüssel bis {until}, oder bis Sie die Entscheidung gelesen haben. Benutzen andere diesen Browser? Dann vergessen Sie ihn hier.',
  'remember.forget': 'Hier vergessen',
  'remember.forgotten':
    'In diesem Browser vergessen. Der Fall selbst geht weiter: Bewahren Sie den Schlüssel auf.',
  'remember.ended':
    'Der Fall ist entschieden, deshalb merkt sich dieser Browser seinen Schlüssel nicht mehr.',
  'complain.title': 'Sich über den Umgang mit Ihren Daten beschweren',
  'complain.promise':
    'Wir bestätigen innerhalb von 30 Tagen den Eingang Ihrer Beschwerde, gehen ihr nach und teilen Ihnen das Ergebnis unverzüglich mit. Sie können sich auch beim Information Commissioner beschweren.',
  'complain.statement': 'Worüber Sie sich beschweren, in Ihren Worten',
  'complain.email':
    'E-Mail-Adresse, falls wir Ihnen schreiben dürfen. Sie wird verschlüsselt aufbewahrt und mit dem Fall gelöscht.',
  'complain.send': 'Beschwerde absenden',
  'complain.sent': 'Ihre Beschwerde wurde gesendet',
  'complain.sentKey':
    'Ihre Beschwerde wurde gesendet. Notieren Sie den Fallschlüssel, er wird nur einmal angezeigt:',
  'complain.before': 'Sie haben sich bereits beschwert',
  'complain.beforeKey':
    'Der Fallschlüssel wurde beim Absenden der Beschwerde angezeigt und kann nicht noch einmal angezeigt werden.',
  'complain.on': 'Sie haben sich am {at} beschwert.',
  'complain.received': 'Wir bestätigen den Eingang Ihrer Beschwerde bis zum {due}',
  'complain.acknowledged': 'Wir gehen Ihrer Beschwerde nach und teilen Ihnen das Ergebnis mit.',
  'complain.answered': 'Wir haben Ihre Beschwerde beantwortet.',
  'complain.by': 'Wir bestätigen bis',

  'case.title': 'Ihr Einwand gegen eine automatische Entscheidung',
  'case.script':
    'Diese Seite braucht JavaScript. Schreiben Sie sonst an den Kontakt der Website und nennen Sie die Fallnummer, die Sie mit Ihrem Schlüssel bekommen haben.',
  'case.key': 'Fallschlüssel',
  'case.keyHint':
    'Die 26 Zeichen, die Sie bekommen haben, als Sie um eine Prüfung baten. Großbuchstaben und Bindestriche sind nicht nötig.',
  'case.show': 'Fall zeigen',
  'case.another': 'Einen anderen Fall öffnen',
  'case.loading': 'Wird geladen …',
  'case.missing':
    'Kein Fall hat diesen Schlüssel. Prüfen Sie jedes Zeichen; der Fall kann auch gelöscht sein.',
  'case.later': 'Zu viele Anfragen aus Ihrem Netz. Versuchen Sie es in einigen Minuten wieder.',
  'case.away':
    'Der Fall konnte nicht gelesen werden. Nichts wurde verändert. Versuchen Sie es gleich noch einmal.',
  'case.answered': 'Ihre Antwort wurde abgeschickt.',
  'case.invalid':
    'Die Antwort wurde nicht abgeschickt: Schreiben Sie 1 bis 4.000 Zeichen, ohne Steuerzeichen.',
  'case.closed': 'Die Antwort wurde nicht abgeschickt: Es ist keine Frage mehr offen.',
  'case.open': 'Wir antworten bis {due}',
  'case.late': 'Überfällig: Eine Antwort war fällig bis {due}',
  'case.overturned': 'Wir lagen falsch: Dieser Besuch zählt als der eines Menschen.',
  'case.stays': 'Die Prüfung hat Ihnen recht gegeben. Die Entscheidung selbst bleibt, wie sie ist.',
  'case.upheld': 'Ein Mensch hat es geprüft: Die Entscheidung bleibt.',
  'next.reading': 'Ein Mensch liest Ihren Fall. Sie müssen nichts tun.',
  'next.question': 'Es gibt eine Frage an Sie. Beantworten Sie sie unten.',
  'next.answered': 'Ihre Antwort ist angekommen. Sie müssen nichts tun.',
  'next.upheld':
    'Wenn Sie nicht einverstanden sind, können Sie an den Kontakt unten schreiben oder sich bei Ihrer Datenschutzbehörde beschweren.',
  'step.filed': 'Eingegangen',
  'step.asked': 'Frage gestellt',
  'step.answered': 'Sie haben geantwortet',
  'step.decided': 'Von einem Menschen entschieden',
  'step.due': 'Fällig bis {due}',
  'step.none': 'Bisher keine Frage',
  'step.never': 'Keine Frage gestellt',
  'case.extended': 'Verlängert bis',
  'case.longer': 'Warum es länger dauert',
  'case.number': 'Fallnummer',
  'case.contact': 'Kontakt',
  'case.question': 'Die Frage an Sie',
  'case.answer': 'Ihre Antwort',
  'case.answerHint': 'Bis zu 4.000 Zeichen. Sie können einmal antworten.',
  'case.send': 'Antwort abschicken',
  'case.reasons': 'Begründung des Ergebnisses',
  'case.first': 'Die erste Begründung',
  'case.second': 'Die zweite Begründung',
  'case.statement': 'Was Sie geschrieben haben',
  'case.decision': 'Die Entscheidung, um die es geht',
  'case.gone': 'Die Anzeichen dafür sind nicht mehr gespeichert.',
  'case.secret':
    'Wer den Fallschlüssel hat, kann diesen Fall lesen und für Sie antworten. Behalten Sie ihn für sich.',
  'notice.noController': 'Diese Website hat nicht genannt, wer verantwortlich ist.',
  'notice.noContact': 'Diese Website hat keinen Kontakt genannt.',
  'notice.noRecipients': 'Die Website hat nicht gesagt, wer es sonst bekommt.',
  'notice.webhooks':
    'Dieses System schickt Nachrichten über das, was geschieht, an {hosts}. Die Website hat nicht gesagt, wer es sonst bekommt.',
  'notice.noTransfers': 'Dieses System schickt nichts.',
  'notice.askTransfers': 'Fragen Sie den Kontakt oben, wo {hosts} die Nachrichten verarbeitet.',
  'notice.retention':
    'Entscheidungen werden {days} Tage gespeichert, eine verschlüsselte Form Ihrer Netzadresse einen Tag, und eine Woche lang, aus wie vielen Netzen dieses Gerät kam; der Nachweis Ihrer Einwilligung, bis er gelöscht wird.',
  'notice.noAuthority':
    'Die Website hat keine Behörde genannt. In der Europäischen Union finden Sie Ihre auf edpb.europa.eu.',
  'refused.title': 'Das wurde abgelehnt',
  'refused.notFoundTitle': 'Seite nicht gefunden',
  'refused.first': 'Prüfen Sie die Adresse, oder {link}.',
  'refused.firstLink': 'beginnen Sie auf der ersten Seite',
  'refused.code': 'Kennung {code}',
  'refused.not-found': 'An dieser Adresse ist keine Seite.',
  'refused.unauthenticated':
    'Nichts wurde verändert. Diese Seite war zu lange offen, oder ihr Cookie fehlt. Gehen Sie zurück und sehen Sie noch einmal nach.',
  'refused.no-data': 'Über diesen Besuch ist nichts mehr gespeichert.',
  'refused.rate-limited':
    'Gerade zu viele Anfragen. Warten Sie eine Minute und versuchen Sie es dann wieder.',
  'refused.too-many-cases':
    'Heute kamen mehrere Einwände aus Ihrem Netz, deshalb wurde dieser nicht angenommen.',
  'refused.unavailable': 'gpd kann gerade nicht antworten. Versuchen Sie es gleich noch einmal.',
  'refused.unchanged': 'Nichts wurde verändert.',
  'refused.long': 'Was Sie geschrieben haben: Der Text ist zu lang, höchstens 4.000 Zeichen.',
  'refused.short': 'Schreiben Sie, was geschehen ist. Ein Satz genügt.',
  'refused.email': 'Die E-Mail-Adresse ist nicht vollständig.',
  'refused.write': 'Schreiben Sie an {contact} und nennen Sie die Nummer {number}.',
  'refused.ask':
    'Diese Website hat keinen Kontakt genannt. Schreiben Sie der Website und nennen Sie die Nummer {number}.',
};

export const SCRIPT: ScriptWords = {
  intro:
    'Mit Ihrer Einwilligung prüft diese Website Ihr Gerät, um es wiederzuerkennen und Menschen von Programmen zu unterscheiden. Hier können Sie sehen, was sie über diesen Browser speichert, und es löschen lassen. Viele Geräte sehen gleich aus. Wenn Ihres dazugehört, kann seine Kennung geteilt sein, und nur der eine gezeigte Besuch kann hier angesehen und gelöscht werden.',
  once: 'Der Knopf „Zeigen“ prüft Ihren Browser. Dieser Besuch wird so lange gespeichert wie jeder andere, wenn Sie ihn nicht hier löschen.',
  visit:
    'Das ist der Besuch, den der Link hierher gebracht hat. Ihr Browser wurde nicht noch einmal geprüft.',
  lookUpAlone:
    'Viele Geräte teilen sich diese Kennung, deshalb wird nur dieses Nachsehen gezeigt und kein früherer Besuch. Den Besuch selbst zeigt der Link, den eine Website gleich danach gibt.',
  visitOver:
    'Der Besuch, der Sie hierher gebracht hat, kann nicht mehr gezeigt werden: Das geht fünf Minuten lang, im selben Browser. Drücken Sie „Zeigen“.',
  look: 'Zeigen',
  looking: 'Es wird nachgesehen …',
  gpc: 'Ihr Browser sendet Global Privacy Control. Die Geräteprüfung lief nicht, und dieser Besuch hat hier nichts hinterlassen.',
  away: 'Die Geräteprüfung war nicht zu erreichen. Nichts wurde verändert. Versuchen Sie es gleich noch einmal.',
  noDetails: 'Der Server hat nicht gesagt, was er sonst speichert. Drücken Sie gleich noch einmal „Zeigen“.',
  refused: 'Die Geräteprüfung hat nicht entschieden, deshalb wurde nichts nachgesehen.',
  unproven:
    'Diese Website prüft nur mit aufgezeichneter Einwilligung, und dieser Browser hat keine. Nichts wurde nachgesehen.',
  clockFast: 'Ihre Uhr geht etwa {duration} vor. Die Geräteprüfung hat die Zeit des Servers benutzt.',
  clockSlow: 'Ihre Uhr geht etwa {duration} nach. Die Geräteprüfung hat die Zeit des Servers benutzt.',
  nobody:
    'Dieser Browser zeigt zu wenig, um wiedererkannt zu werden. Es gibt nur die Entscheidung von eben, und sie gehört zu keinem Gerät.',
  verdictTitle: 'Die Entscheidung von eben',
  request: 'Nummer dieser Entscheidung, für Fragen:',
  notDone:
    'Nichts wurde gelöscht oder eingereicht: Diese Seite war länger als fünf Minuten offen, oder ihr Cookie fehlt. Sehen Sie noch einmal nach und drücken Sie dann den Knopf wieder. Was Sie geschrieben haben, bleibt.',
  lookAgain: 'Noch einmal nachsehen',
  typedKept: 'Was Sie geschrieben haben, steht wieder im Formular.',
  unconfirmed: 'Der Server hat das nicht bestätigt. Drücken Sie den Knopf noch einmal.',
  noToken:
    'Die Website hat die Adresse dieser Seite nicht angemeldet, deshalb kann sie hier weder Einzelheiten zeigen noch etwas löschen. Fragen Sie die Website.',
  noCookie:
    'Ihr Browser hat den Cookie nicht behalten, den diese Seite braucht, um Einzelheiten zu zeigen oder etwas zu löschen. Erlauben Sie Cookies für diese Website und drücken Sie dann noch einmal „Zeigen“.',
  human: 'Ein Mensch',
  declared_agent: 'Ein angemeldeter Agent',
  undeclared_automation: 'Ein automatischer Besuch',
  unknown: 'Nicht entschieden',
  consentsTitle: 'Wozu dieser Browser zugestimmt hat',
  noConsents: 'Dieser Browser hat für diese Adresse keine Wahl gespeichert.',
  granted: 'Sie haben am {at} zugestimmt. Das endet am {until}.',
  denied: 'Sie haben am {at} abgelehnt. Nach dem {until} dürfen wir wieder fragen.',
  withdrawn: 'Sie haben Ihre Einwilligung am {at} widerrufen.',
  withdraw: 'Widerrufen',
  receiptPage: 'Quittung zum Drucken speichern',
  receiptFile: 'Für ein Programm speichern',
  withdrawnNow:
    'Widerrufen. Kein weiterer Besuch wird geprüft. Daten früherer Besuche bleiben, bis ihre Frist endet. Was diese Seite zeigt, kann hier gelöscht werden.',
  notWithdrawn: 'Der Widerruf konnte nicht aufgezeichnet werden. Drücken Sie noch einmal „Widerrufen“.',
};
