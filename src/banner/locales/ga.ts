import type { Words } from '../view/words.ts';

export const words: Words = {
  title: 'Do rogha',
  body: 'Ní bhailítear aon rud sula roghnaíonn tú. Is féidir leat d’intinn a athrú am ar bith.',
  accept: 'Glac leis',
  reject: 'Diúltaigh',
  settings: 'Socruithe',
  acceptAll: 'Glac le gach rud',
  rejectAll: 'Diúltaigh do gach rud',
  save: 'Sábháil roghanna',
  close: 'Dún',
  reopen: 'Roghanna príobháideachais',
  policy: 'Beartas príobháideachais',
  gpc: 'Urramaítear Global Privacy Control',
  gpcWhy: 'Iarrann do bhrabhsálaí ar shuíomhanna gan é seo a dhéanamh, mar sin fanann sé múchta.',
  granted: 'Thoiligh tú ar {date}.',
  denied: 'Dhiúltaigh tú ar {date}.',
  withdrawn: 'Tharraing tú siar do thoiliú ar {date}.',
  until: 'Fiafrófar díot arís tar éis {date}.',
  entry: 'Taifead uimh. {seq}',
  whyPolicy: 'Tá an beartas athraithe, mar sin táimid ag fiafraí arís.',
  whyExpired: 'Tá do rogha imithe as feidhm, mar sin táimid ag fiafraí arís.',
  whyPurpose: 'Tá do rogha ag teastáil le haghaidh rud nua.',
  saved: 'Sábháladh do rogha.',
  later:
    'Tá do rogha i bhfeidhm anseo. Cuirfear an freastalaí ar an eolas chomh luath agus is féidir teacht air.',
  failed: 'Níorbh fhéidir do rogha a shábháil, mar sin ní bhailítear aon rud. Bain triail eile as.',
};
