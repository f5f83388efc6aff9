BEGIN TRANSACTION;
CREATE TABLE temporaldp_ledger (
	id INTEGER NOT NULL CHECK (id = 1), 
	configuration TEXT NOT NULL, 
	n_steps INTEGER NOT NULL, 
	head TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "temporaldp_ledger" VALUES(1,'{"alpha":1.0,"bound":"paper","correlations":{"salt":"5dfa0b8449ea5507190e3d68bc85d982","users":["b178bd34f2235ec7bf92c3f419355939024582795cba5863cc73127c47ebd3fb"]},"format":"temporaldp ledger 3","horizon":null,"mechanism":"DiscreteLaplaceHistogram(n_states=2)","metric":null,"neighboring_relation":"replace_one","plan":null,"reserve":null,"states":["0","1"],"step":null}',5,'0894c05c10fa62a03a662a12e9de65acefe32375b3196fff4bec6f98bfc6d0df');
CREATE TABLE temporaldp_steps (
	step INTEGER NOT NULL, 
	time TEXT NOT NULL, 
	parameter DOUBLE NOT NULL, 
	epsilon DOUBLE NOT NULL, 
	leakage DOUBLE, 
	last BOOLEAN NOT NULL, 
	output TEXT, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (step), 
	UNIQUE (time)
);
INSERT INTO "temporaldp_steps" VALUES(0,'0',2.59816254083403197494e-01,2.59816254083403197494e-01,2.59816254083403197494e-01,0,'{"array":[66,34],"dtype":"<i8","shape":[2]}','f4b149d8e430a6c3c43f421fa3206f9471e87f46faf64c2162954d259c78abf5');
INSERT INTO "temporaldp_steps" VALUES(1,'1',2.59816254083403197494e-01,2.59816254083403197494e-01,4.15146507000024589384e-01,0,'{"array":[75,11],"dtype":"<i8","shape":[2]}','03902aecbcf09ed92ce21145d6f89e8304da8eeb1cf51bc5dd4487dd99d12f2f');
INSERT INTO "temporaldp_steps" VALUES(2,'2',2.59816254083403197494e-01,2.59816254083403197494e-01,0.570476759916646,0,'{"array":[63,30],"dtype":"<i8","shape":[2]}','d90027d78ce46991565ddf5576173aa98573f7ca2943ec081d7d4c8762f93e52');
INSERT INTO "temporaldp_steps" VALUES(3,'3',0.0,0.0,0.570476759916646,0,NULL,'672f428dec6878f06ef5f4a87d50e23647a83fec93d90e5ffb3cc298bcf070d4');
INSERT INTO "temporaldp_steps" VALUES(4,'4',2.59816254083403197494e-01,2.59816254083403197494e-01,6.25484990944946916968e-01,0,'{"array":[66,34],"dtype":"<i8","shape":[2]}','0894c05c10fa62a03a662a12e9de65acefe32375b3196fff4bec6f98bfc6d0df');
COMMIT;
