/** The purpose that every tenant starts with, in the other languages that the banner speaks: title and description. */
export const FIRST_PURPOSE_TEXTS: Readonly<Record<string, readonly [title: string, description: string]>> = {
  ar: [
    'التعرّف على الجهاز',
    'يتعرّف على هذا الجهاز للتمييز بين الأشخاص والبرامج الآلية ولمنع إساءة الاستخدام.',
  ],
  bg: [
    'Разпознаване на устройството',
    'Разпознава това устройство, за да различава хората от автоматизирани програми и да предотвратява злоупотреби.',
  ],
  cs: [
    'Rozpoznání zařízení',
    'Rozpoznává toto zařízení, aby bylo možné odlišit lidi od automatizovaných programů a zabránit zneužití.',
  ],
  da: [
    'Genkendelse af enheden',
    'Genkender denne enhed for at skelne mennesker fra automatiske programmer og forhindre misbrug.',
  ],
  de: [
    'Geräteerkennung',
    'Erkennt dieses Gerät wieder, um Menschen von automatischen Programmen zu unterscheiden und Missbrauch zu verhindern.',
  ],
  el: [
    'Αναγνώριση συσκευής',
    'Αναγνωρίζει αυτή τη συσκευή, ώστε να διακρίνει τους ανθρώπους από αυτοματοποιημένα προγράμματα και να αποτρέπει την κατάχρηση.',
  ],
  es: [
    'Identificación del dispositivo',
    'Reconoce este dispositivo para distinguir a las personas de los programas automáticos y evitar abusos.',
  ],
  et: [
    'Seadme tuvastamine',
    'Tunneb selle seadme ära, et eristada inimesi automaatsetest programmidest ja vältida kuritarvitusi.',
  ],
  fi: [
    'Laitteen tunnistaminen',
    'Tunnistaa tämän laitteen, jotta ihmiset voidaan erottaa automaattisista ohjelmista ja väärinkäytökset estää.',
  ],
  fr: [
    'Identification de l’appareil',
    'Reconnaît cet appareil pour distinguer les personnes des programmes automatiques et empêcher les abus.',
  ],
  ga: [
    'Aithint gléis',
    'Aithníonn sé an gléas seo chun daoine a idirdhealú ó ríomhchláir uathoibríocha agus chun mí-úsáid a chosc.',
  ],
  hr: [
    'Prepoznavanje uređaja',
    'Prepoznaje ovaj uređaj kako bi se ljudi razlikovali od automatiziranih programa i spriječila zlouporaba.',
  ],
  hu: [
    'Eszközfelismerés',
    'Felismeri ezt az eszközt, hogy megkülönböztesse az embereket az automatizált programoktól, és megelőzze a visszaéléseket.',
  ],
  it: [
    'Identificazione del dispositivo',
    'Riconosce questo dispositivo per distinguere le persone dai programmi automatici e prevenire gli abusi.',
  ],
  lt: [
    'Įrenginio atpažinimas',
    'Atpažįsta šį įrenginį, kad žmones būtų galima atskirti nuo automatinių programų ir užkirsti kelią piktnaudžiavimui.',
  ],
  lv: [
    'Ierīces atpazīšana',
    'Atpazīst šo ierīci, lai atšķirtu cilvēkus no automatizētām programmām un novērstu ļaunprātīgu izmantošanu.',
  ],
  mt: [
    'Għarfien tal-apparat',
    'Jagħraf dan l-apparat biex jiddistingwi n-nies minn programmi awtomatiċi u jipprevjeni l-abbuż.',
  ],
  nl: [
    'Apparaatherkenning',
    'Herkent dit apparaat om mensen van automatische programma’s te onderscheiden en misbruik te voorkomen.',
  ],
  pl: [
    'Rozpoznawanie urządzenia',
    'Rozpoznaje to urządzenie, aby odróżniać ludzi od programów automatycznych i zapobiegać nadużyciom.',
  ],
  pt: [
    'Identificação do dispositivo',
    'Reconhece este dispositivo para distinguir as pessoas dos programas automáticos e evitar abusos.',
  ],
  ro: [
    'Recunoașterea dispozitivului',
    'Recunoaște acest dispozitiv pentru a deosebi persoanele de programele automate și a preveni abuzurile.',
  ],
  sk: [
    'Rozpoznanie zariadenia',
    'Rozpoznáva toto zariadenie, aby bolo možné odlíšiť ľudí od automatizovaných programov a zabrániť zneužitiu.',
  ],
  sl: [
    'Prepoznavanje naprave',
    'Prepozna to napravo, da loči ljudi od samodejnih programov in prepreči zlorabe.',
  ],
  sv: [
    'Igenkänning av enheten',
    'Känner igen den här enheten för att skilja människor från automatiska program och förhindra missbruk.',
  ],
};
