BEGIN TRANSACTION;
CREATE TABLE temporaldp_events (
	number INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	at TEXT NOT NULL, 
	"by" TEXT NOT NULL, 
	content TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "temporaldp_events" VALUES(0,3,'adopt','2026-11-23T16:11:01+00:00','Ann Lee','{"both":false,"reserve":0.25981625407301034,"users":["888193457ac9b8799589d951051f340cab41db0dd1d28c13294d32945d7d4053"]}','7cb9296c2f4cbdcb8c44a9da357feab526784e09a6b615f8d900c0ef0e54bbc2');
CREATE TABLE temporaldp_ledger (
	id INTEGER NOT NULL CHECK (id = 1), 
	configuration TEXT NOT NULL, 
	n_steps INTEGER NOT NULL, 
	head TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "temporaldp_ledger" VALUES(1,'{"alpha":1.0,"bound":"exact","correlations":{"salt":"db6865ffe24357b47150267be107531e","users":["888193457ac9b8799589d951051f340cab41db0dd1d28c13294d32945d7d4053"]},"format":"temporaldp ledger 4","horizon":null,"mechanism":"DiscreteLaplaceHistogram(n_states=2)","metric":null,"neighboring_relation":"replace_one","plan":null,"reserve":null,"states":["0","1"],"step":null}',5,'3a2d6f1fbc7acb2a26891e4ec0d298a12ec99c67ce75a3a3dd21cf911b3abe40');
CREATE TABLE temporaldp_steps (
	step INTEGER NOT NULL, 
	time TEXT NOT NULL, 
	parameter DOUBLE NOT NULL, 
	epsilon DOUBLE NOT NULL, 
	leakage DOUBLE, 
	last BOOLEAN NOT NULL, 
	output TEXT, 
	digest TEXT, 
	format INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (step), 
	UNIQUE (time)
);
INSERT INTO "temporaldp_steps" VALUES(0,'0',2.59816254073010344249e-01,2.59816254073010344249e-01,2.59816254073530095158e-01,0,'{"array":[80,14],"dtype":"<i8","shape":[2]}','9d43ad13:22940ca110a39c76349364d37800d0eddc626b414ac7b81e77d299a198da8c3b',4,'9c87a9796bca6b84f3d568b8adf784a389feab4174ed343257c29182be29c59c');
INSERT INTO "temporaldp_steps" VALUES(1,'1',0.1,0.1,3.19784268791305448242e-01,0,'{"array":[56,4],"dtype":"<i8","shape":[2]}','9d43ad13:a81b52ee3a2530c0c1625d2941b3b974a350bac77ee1b47f8f16354ecb0fa9b7',4,'e5422a174fc7c1ca2577856e7650a715eeaf5410cb5409ced977d06b9885b6a9');
INSERT INTO "temporaldp_steps" VALUES(2,'2',2.59816254073010344249e-01,2.59816254073010344249e-01,4.12483333321004175253e-01,0,'{"array":[73,30],"dtype":"<i8","shape":[2]}','9d43ad13:1b5e89f5ab1e2dd493500e15d022805cf182f0f1490cf1cd38ae5afb7e7c3c0c',4,'38b309cdda4f7b97ee599533f7668b817fbe2cc60ccd30325ed64702b51a8cc5');
INSERT INTO "temporaldp_steps" VALUES(3,'3',0.0,0.0,4.12483333321004175253e-01,0,NULL,NULL,4,'83f7c5d2cd17b285697798bf8c7dadfde3bf7d9bfdd29fef0e935df5098b03c6');
INSERT INTO "temporaldp_steps" VALUES(4,'4',2.59816254073010344249e-01,2.59816254073010344249e-01,5.05561690799757545988e-01,0,'{"array":[80,17],"dtype":"<i8","shape":[2]}','9d43ad13:496142ea013fbd063a1fad4d656c232bb2e76d8adac10aa569d8fb99e59e9a98',4,'3a2d6f1fbc7acb2a26891e4ec0d298a12ec99c67ce75a3a3dd21cf911b3abe40');
COMMIT;
