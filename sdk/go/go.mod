module gpd.dev/consent-go

go 1.19
